"""A comparison as Markdown, for a pull request. Strings from a trace are shown, never rendered."""

from __future__ import annotations

from collections.abc import Sequence

from phasetrace.model import Comparison, Difference, PartChange, PhaseChange
from phasetrace.render import units
from phasetrace.render.comparison import sentences
from phasetrace.render.comparison.text import about, setting, signed, worth_telling
from phasetrace.render.ink import Ink
from phasetrace.render.markdown import bullets, plain, table

_INK = Ink(width=1_000_000)


def comparison(c: Comparison) -> str:
    """The whole answer."""
    what = [
        f"{title}: {about(d, name)}"
        for title, d, name in zip(("before", "after"), (c.before, c.after), c.names, strict=True)
    ]
    blocks = [
        f"### {plain(sentences.verdict(c))}",
        bullets([*what, *sentences.likeness(c)]),
        *_metrics(c),
        *_phases(c),
    ]
    if c.findings:
        blocks += ["**Causes**", bullets([f"{f.fate}: {f.cause}, {sentences.fate(f)}" for f in c.findings])]
    blocks += _differences("set differently", c.knobs) + _differences("measured differently", c.measured)
    blocks += ["**Noise**", bullets(list(sentences.noise(c)))]
    return "\n\n".join(blocks) + "\n"


def _metrics(c: Comparison) -> list[str]:
    rows = [
        (
            sentences.named(m),
            *(sentences.value(m.metric, amount) for amount in (m.before, m.after)),
            sentences.times_better(m),
            m.word.value,
        )
        for m in sentences.in_order(c)
    ]
    return [table(("mean", "before", "after", "times better", ""), rows)] if rows else []


def _phases(c: Comparison) -> list[str]:
    largest = max((abs(p.difference_ns) for p in c.phases), default=0.0)
    rows = []
    for p in c.phases:
        rows.append((p.phase.value, *_times(p)))
        rows += [(f"{p.phase}: {part.part}", *_times(part)) for part in worth_telling(p, largest)]
    return [table(("a request", "before", "after", "difference"), rows)] if rows else []


def _times(change: PhaseChange | PartChange) -> tuple[str, str, str]:
    before, after = (units.duration(ns) for ns in (change.before_ns, change.after_ns))
    return before, after, signed(change.difference_ns)


def _differences(title: str, found: Sequence[Difference]) -> list[str]:
    rows = [(d.name, setting(d.before, _INK), setting(d.after, _INK)) for d in found]
    return [table((title, "before", "after"), rows)] if rows else []
