"""A diagnosis as Markdown, for a ticket or a pull request. Strings from a trace are shown, never rendered."""

from __future__ import annotations

import re
from collections.abc import Sequence

from phasetrace.model import Diagnosis, Finding
from phasetrace.render import context, units
from phasetrace.render.ink import Ink
from phasetrace.render.text import METRICS, seen

# No width: Markdown wraps by itself.
_INK = Ink(width=1_000_000)
_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]<#|~&$@])")


def diagnosis(d: Diagnosis) -> str:
    """The whole verdict."""
    blocks = [f"### {plain(d.cause)}: {plain(d.verdict)}", _about(d), *_phases(d), *_metrics(d)]
    first = context.leading(d)
    if first:
        blocks += _answer(first, context.further_evidence(d, first))
    further = context.further(d)
    if further:
        blocks += ["**Also**", bullets([_one_line(f) for f in further])]
    caveats = [*seen(d, _INK), *([context.ceilings(d.ceilings)] if d.ceilings else [])]
    caveats += (x.defect for x in d.breakdown.defects)
    caveats += [f"not split: {what}" for what in d.breakdown.unsplit]
    caveats += [f"cannot tell {rule.cause}; missing: {rule.measure}" for rule in d.not_enough]
    blocks += ["**The data**", bullets(caveats)]
    return "\n\n".join(blocks) + "\n"


def plain(text: str) -> str:
    """A foreign string that Markdown and HTML leave as it is, on one line."""
    return _MEANS_SOMETHING.sub(r"\\\1", _INK.say(text))


def code(text: str) -> str:
    """A block of code, whatever backticks it holds."""
    body = "\n".join(_INK.code(text))
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}\n{fence}"


def _about(d: Diagnosis) -> str:
    counts, engine = context.counts(d.breakdown), context.engine(d.breakdown)
    about = [
        units.counted(counts.diagnosed, "request"),
        " ".join(filter(None, engine)),
        context.model_name(d.breakdown) or "",
        f"goal {d.goal}",
        f"{counts.warm_up} warm-up and {counts.failed} failed kept apart"
        if counts.warm_up + counts.failed
        else "",
    ]
    return plain(", ".join(filter(None, about)))


def _phases(d: Diagnosis) -> list[str]:
    total = d.breakdown.total_ns
    if total <= 0:
        return []
    rows = []
    for p in d.breakdown.phases:
        if p.ns > 0:
            parts = ", ".join(f"{t.part} {units.share(t.ns / total)}" for t in p.parts if t.ns > 0)
            rows.append((p.phase.value, units.duration(p.ns), units.share(p.ns / total), parts))
    return [table(("phase", "time", "share", "parts"), rows)]


def _metrics(d: Diagnosis) -> list[str]:
    b = d.breakdown
    rows = [
        (units.metric_name(name), *map(units.duration, (m.p50, m.p95, m.p99)))
        for name, m in ((name, b.metrics[name]) for name in METRICS if name in b.metrics)
    ]
    if b.throughput_tok_s is not None:
        rows.append(("throughput", units.rate(b.throughput_tok_s), "", ""))
    return [table(("", "p50", "p95", "p99"), rows)] if rows else []


def _answer(f: Finding, evidence: list[str]) -> list[str]:
    blocks = [f"**{plain(f.recommendation)}**", *map(code, f.commands)]
    facts = [f"gain: {units.gain(f.prediction)}"] if f.prediction else []
    facts += [f"cost: {f.tradeoff}"] if f.tradeoff else []
    facts += [f"confidence: {f.confidence}", *evidence]
    return [*blocks, bullets(facts)]


def _one_line(f: Finding) -> str:
    gain = f": {units.gain(f.prediction)}" if f.prediction else ""
    return f"{f.cause} ({f.phase}, {units.share(f.share)} of the time){gain}. {f.recommendation}"


def bullets(sentences: Sequence[str]) -> str:
    """A list, an item a sentence."""
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a head."""
    lines = [head, ["---"] * len(head), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
