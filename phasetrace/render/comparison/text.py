"""A comparison as text: whether it helped, where, and what else is not the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from phasetrace.model import Comparison, Diagnosis, Difference, Fate, PartChange, PhaseChange, Word
from phasetrace.render import context, units
from phasetrace.render.comparison import sentences
from phasetrace.render.ink import Cell, Ink, Style, columns
from phasetrace.render.text import joined

SMALL = 0.03  # of the largest difference: a smaller one costs more attention than it is worth
MOST_PARTS = 4
CLEAR = 0.5  # of the largest difference: where less is left of all, shares of it would mislead
ALIKE = 0.95  # of a phase's difference: a part that is all of it says nothing more
MOST_DIFFERENCES = 12
LONGEST = 22  # characters of a value or a name


def comparison(c: Comparison, width: int = 80, color: bool = False, ascii: bool = False) -> str:
    """The whole answer."""
    ink = Ink(width, color, ascii)
    blocks = (
        verdict(c, ink),
        metrics(c, ink),
        phases(c, ink),
        findings(c, ink),
        differences("set differently", c.knobs, ink),
        differences("measured differently", c.measured, ink),
        [line for said in sentences.noise(c) for line in ink.wrap(said, "  ", "")],
    )
    return joined(blocks)


def verdict(c: Comparison, ink: Ink) -> list[str]:
    """The sentence that answers, then what was compared with what."""
    lines = [ink.bold(line) for line in ink.wrap(sentences.verdict(c))]
    for title, d, name in zip(("BEFORE", "AFTER"), (c.before, c.after), c.names, strict=True):
        lines += [ink.dim(line) for line in ink.wrap(about(d, name), " " * 8, f"{title:<8}")]
    return lines + [line for said in sentences.likeness(c) for line in ink.wrap(said)]


def about(d: Diagnosis, name: str) -> str:
    """What one of the recordings is."""
    counts, engine = context.counts(d.breakdown), context.engine(d.breakdown)
    model, device = context.model_name(d.breakdown), context.device(d.breakdown)
    said = [name, units.counted(counts.diagnosed, "request")]
    said += [" ".join(filter(None, engine))] if engine.name else []
    said += [model + (f" on {device}" if device else "")] if model else []
    said += [f"{counts.warm_up} warm-up apart"] * bool(counts.warm_up)
    said += [f"{counts.failed} failed apart"] * bool(counts.failed)
    return ", ".join(said)


def metrics(c: Comparison, ink: Ink) -> list[str]:
    """Each metric, and what is said of it."""
    rows: list[tuple[Cell, ...]] = [_head(ink, "mean", "before", "after", "times better", "")]
    for m in sentences.in_order(c):
        amounts = (ink.say(sentences.value(m.metric, amount)) for amount in (m.before, m.after))
        rows.append((sentences.named(m), *amounts, sentences.times_better(m), (m.word, _style(m.word, ink))))
    return columns(rows, right=(1, 2)) if len(rows) > 1 else []


def phases(c: Comparison, ink: Ink) -> list[str]:
    """Where the difference lies, the largest first; phases sum to the difference of the mean e2e."""
    largest = max((abs(p.difference_ns) for p in c.phases), default=0.0)
    if not largest:
        return []
    total = c.difference_ns
    before, after = (sum(side) for side in zip(*((p.before_ns, p.after_ns) for p in c.phases), strict=True))
    clear = abs(total) >= max(CLEAR * largest, c.runs_differ * before)
    rows = [_head(ink, "", "a request", "before", "after", "difference", "share" if clear else "")]
    for p in c.phases:
        mark = (ink.mark(p.phase), partial(ink.phase, p.phase))
        rows.append((mark, p.phase.value, *_times(p, total if clear else None, ink)))
        rows += [
            ("", f"  {part.part}", *_times(part, total if clear else None, ink))
            for part in worth_telling(p, largest)
        ]
    whole = PhaseChange(c.phases[0].phase, before, after)
    rows.append(("", "all", *_times(whole, total if clear else None, ink)))
    return columns(rows, right=(2, 3, 4, 5))


def findings(c: Comparison, ink: Ink) -> list[str]:
    """What became of each cause."""
    lines = []
    for f in c.findings:
        style = ink.bold if f.fate is not Fate.STAYED else str
        first = f"  {f.fate:<8}{ink.say(f.cause)}: "
        wrapped = ink.wrap(sentences.fate(f), " " * 10, first)
        lines += [style(wrapped[0]), *wrapped[1:]]
    return [ink.dim("causes"), *lines] if lines else []


def differences(title: str, found: Sequence[Difference], ink: Ink) -> list[str]:
    """Names and values, those that are too many counted."""
    rows: list[tuple[Cell, ...]] = [_head(ink, title, "before", "after")]
    rows += [(_short(d.name, ink), setting(d.before, ink), setting(d.after, ink)) for d in found]
    lines = columns(rows[: MOST_DIFFERENCES + 1]) if found else []
    more = len(found) - MOST_DIFFERENCES
    return [*lines, f"  and {more} more, which --format json lists"] if more > 0 else lines


def setting(value: bool | int | float | str | None, ink: Ink) -> str:
    """A value of a setting, on one line and not too long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return units.three_digits(value)
    return units.UNKNOWN if value is None else _short(str(value), ink)


def signed(ns: float) -> str:
    """A difference: "+5.29 ms", "-623 ms"."""
    return ("+" if ns > 0 else "") + units.duration(ns)


def _short(text: str, ink: Ink) -> str:
    said = ink.say(text)
    return said if len(said) <= LONGEST else said[: LONGEST - 3] + "..."


def worth_telling(p: PhaseChange, largest: float) -> list[PartChange]:
    """The parts of a phase that say more than the phase, of which `largest` is the largest difference."""
    told = [t for t in p.parts if abs(t.difference_ns) >= SMALL * largest][:MOST_PARTS]
    same = len(told) == 1 and abs(told[0].difference_ns) >= ALIKE * abs(p.difference_ns)
    return [] if same else told


def _times(change: PhaseChange | PartChange, total: float | None, ink: Ink) -> tuple[str, ...]:
    amounts = (units.duration(ns) for ns in (change.before_ns, change.after_ns))
    share = units.share(change.difference_ns / total) if total else ""
    return (*map(ink.say, amounts), ink.say(signed(change.difference_ns)), share)


def _style(word: Word, ink: Ink) -> Style:
    if word is Word.WORSE:
        return ink.warn
    return ink.bold if word is Word.BETTER else ink.dim


def _head(ink: Ink, *titles: str) -> tuple[Cell, ...]:
    return tuple((title, ink.dim) for title in titles)
