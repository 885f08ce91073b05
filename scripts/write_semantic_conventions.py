"""Writes docs/semantic-conventions.md from phasetrace/semconv/, the one list of names."""

from collections.abc import Iterable
from pathlib import Path

from phasetrace.semconv import Attribute, Cause, Described, Metric, Scope, SpanName

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "semantic-conventions.md"

INTRODUCTION = """\
# Semantic conventions

Every name that others see in what phasetrace writes. Names follow the OpenTelemetry GenAI conventions where
those have one; what they lack is under `phasetrace.*`. A key that ends in a dot is a prefix. "Packed" values
are columns of integers (differences, bytes regrouped by significance, zlib) and stand in trace files only.

This page is generated: `python scripts/write_semantic_conventions.py` writes it from `phasetrace/semconv/`.
"""


def table(names: Iterable[Described], head: str = "name") -> str:
    rows = [f"| `{name}` | {f'`{name.unit}`' if name.unit else ''} | {name.meaning} |" for name in names]
    return "\n".join([f"| {head} | unit | meaning |", "|---|---|---|", *rows])


def metrics() -> str:
    rows = [
        f"| `{m}` | {m.kind} | `{m.unit}` | {m.meaning} | {', '.join(map(str, m.bounds))} |" for m in Metric
    ]
    return "\n".join(["| name | kind | unit | meaning | bucket bounds |", "|---|---|---|---|---|", *rows])


def causes() -> str:
    rows = [f"| `{cause}` | {cause.phase} | {cause.meaning} |" for cause in Cause]
    return "\n".join(["| cause | phase | meaning |", "|---|---|---|", *rows])


def document() -> str:
    ours = [a for a in Attribute if a.startswith("phasetrace.")]
    shared = [a for a in Attribute if a not in ours]
    parts = [
        INTRODUCTION,
        "## Spans\n\nA request's own span is named `{operation} {model}`, under the application's span.\n",
        table(SpanName),
        "\n## Instrumentation scopes\n",
        table(Scope),
        "\n## Attributes of the conventions\n",
        table(shared, "key"),
        "\n## Attributes of phasetrace's own\n",
        table(ours, "key"),
        "\n## Metrics\n\nSent to OTLP endpoints, and scraped from `phasetrace run --metrics`.\n",
        metrics(),
        "\n## Causes\n\nWhat a diagnosis can name, and the phase that owns the time.\n",
        causes(),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    DOCUMENT.parent.mkdir(exist_ok=True)
    DOCUMENT.write_text(document(), encoding="utf-8")
