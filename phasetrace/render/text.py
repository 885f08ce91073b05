"""A diagnosis as text: what a person grasps in five seconds, and below it what they read next."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite

from phasetrace.model import Breakdown, Diagnosis, Finding, NotEnoughData, Part, Phase, PhaseTime
from phasetrace.render import context, course, units
from phasetrace.render.ink import Cell, Ink, apportion, columns, flow, table_room

METRICS = ("ttft_ns", "tpot_ns", "itl_ns", "e2e_ns")
SMALL_PART = 0.01  # of its phase: below, a part costs more attention than it is worth
SMALL_SHARE = 0.001  # of all time: the same; what decode holds that is in no part always shows
MOST_PARTS = 4
MOST_ASIDES = 4  # defects, unsplit phases, rules without data: the rest is counted


def diagnosis(d: Diagnosis, width: int = 80, color: bool = False, ascii: bool = False) -> str:
    """The whole verdict."""
    ink = Ink(width, color, ascii)
    blocks = (
        verdict(d, ink),
        phases(d.breakdown, ink),
        answer(d, ink),
        others(d, ink),
        metrics(d.breakdown, ink),
        course.pace(d.breakdown, ink),
        course.slowest(d.breakdown, d.goal, ink),
        course.stalls(d.breakdown, ink),
        caveats(d, ink),
    )
    return joined(blocks)


def run_summary(
    d: Diagnosis,
    traces: Sequence[str],
    width: int = 80,
    color: bool = False,
    ascii: bool = False,
    before: str | None = None,
) -> str:
    """What `phasetrace run` leaves on the terminal: phases, verdict, coverage, own cost, next commands.

    `before` is the trace of an earlier run, where there is one to compare with.
    """
    ink = Ink(width, color, ascii)
    finding = context.leading(d)
    lines = verdict(d, ink)
    if finding and finding.prediction:
        lines += ink.wrap(f"{finding.recommendation} Predicted: {units.gain(finding.prediction)}.")
    further = [f"next: phasetrace diagnose {ink.say(shlex.join(traces))}"]
    if before is not None and len(traces) == 1:
        further.append(f"      phasetrace compare {ink.say(shlex.join([before, *traces]))}")
    blocks = (phases(d.breakdown, ink, parts=False), lines, [*seen(d, ink), *further])
    return joined(blocks)


def verdict(d: Diagnosis, ink: Ink) -> list[str]:
    """The sentence that answers, then what it is about."""
    counts = context.counts(d.breakdown)
    engine = context.engine(d.breakdown)
    model, device = context.model_name(d.breakdown), context.device(d.breakdown)
    about = [units.counted(counts.diagnosed, "request")]
    about += [" ".join(filter(None, engine))] if engine.name else []
    about += [model + (f" on {device}" if device else "")] if model else []
    about += [f"goal {d.goal}"] + [f"SLO {_slo(d)}"] * bool(d.slo)
    about += [f"{counts.warm_up} warm-up apart"] * bool(counts.warm_up)
    about += [f"{counts.failed} failed apart"] * bool(counts.failed)
    lines = ink.wrap(f"{d.cause}: {d.verdict}")
    return [*map(ink.bold, lines), *map(ink.dim, ink.wrap(", ".join(about)))]


def phases(b: Breakdown, ink: Ink, parts: bool = True) -> list[str]:
    """A bar of the whole time, and the table that is its legend."""
    total = b.total_ns
    shown = [p for p in b.phases if p.ns > 0]
    if total <= 0:
        return []
    widths = apportion([p.ns for p in shown], ink.width - 4)
    bar = "  " + "".join(ink.fill(p.phase, w) for p, w in zip(shown, widths, strict=True))
    figures = [(p.phase.value, ink.say(units.duration(p.ns)), units.share(p.ns / total)) for p in shown]
    room = table_room([("#", "phase", "time", "share"), *(("#", *f) for f in figures)], ink.width)
    rows: list[tuple[Cell, ...]] = [_head(ink, "", "phase", "time", "share", "parts" if parts else "")]
    for p, figure in zip(shown, figures, strict=True):
        first, *more = _parts(p, total, room) if parts else [""]
        rows.append(((ink.mark(p.phase), partial(ink.phase, p.phase)), *figure, first))
        rows += [("", "", "", "", line) for line in more]
    return [bar, *columns(rows, right=(2, 3))]


def metrics(b: Breakdown, ink: Ink) -> list[str]:
    """The percentiles that users know, which phases own them, and the throughput."""
    known = [name for name in METRICS if name in b.metrics]
    told = [p for p in ("p50", "p95", "p99") if any(isfinite(getattr(b.metrics[n], p)) for n in known)]
    rows: list[tuple[str, ...]] = [("", *told)]
    for name in known:
        figures = [ink.say(units.duration(getattr(b.metrics[name], p))) for p in told]
        rows.append((units.metric_name(name), *figures))
    owners = {name: course.owned(b.owners, name) for name in known}
    room = table_room(rows, ink.width)
    shown = [_head(ink, *rows[0], *(["mostly"] if any(owners.values()) else []))]
    for name, row in zip(known, rows[1:], strict=True):
        first, *more = flow(owners[name], room, "; ") if room >= course.LEAST_ROOM else [""]
        shown += [(*row, first), *(("",) * len(row) + (line,) for line in more)]
    lines = columns(shown, right=range(1, 1 + len(told))) if known else []
    if b.throughput_tok_s is not None:
        lines.append(f"  throughput  {units.rate(b.throughput_tok_s)}")
    return lines + [line for said in course.apart(b.owners) for line in ink.wrap(said, "    ", "  ")]


def answer(d: Diagnosis, ink: Ink) -> list[str]:
    """The first finding: what to change, what it brings, what it costs, and why that is so."""
    f = context.leading(d)
    if f is None:
        return []
    lines = [ink.bold(line) for line in ink.wrap(f.recommendation)]
    for command in f.commands:
        lines += ["    " + line for line in ink.code(command)]
    if f.prediction:
        lines += ink.wrap(units.gain(f.prediction), indent=" " * 8, first="  gain  ")
    if f.tradeoff:
        lines += ink.wrap(f.tradeoff, indent=" " * 8, first="  cost  ")
    where = f"{_where(f)}, " if f.ns > 0 else ""
    lines += ink.wrap(f"{where}confidence {f.confidence}", indent=" " * 8, first="  why   ")
    for sentence in context.further_evidence(d, f):
        lines += ink.wrap(sentence, indent=" " * 10, first=" " * 8 + "- ")
    return [*lines, f"  more  phasetrace explain {ink.say(f.cause)}"]


def others(d: Diagnosis, ink: Ink) -> list[str]:
    """The further findings, a line each."""
    found = context.further(d)
    named = [(ink.say(f.cause), f"{ink.say(f.phase)} {units.share(f.share)}") for f in found]
    room = replace(ink, width=table_room(named, ink.width)) if named else ink
    rows: list[tuple[str, ...]] = []
    for f, names in zip(found, named, strict=True):
        first, *more = room.wrap(units.gain(f.prediction)) if f.prediction else [""]
        rows += [(*names, first), *(("", "", line) for line in more)]
    return [ink.dim("also"), *columns(rows)] if rows else []


def caveats(d: Diagnosis, ink: Ink) -> list[str]:
    """What the verdict rests on: coverage, what the data lacks, what could not be split or decided."""
    lines = seen(d, ink)
    if d.ceilings is not None:
        lines += ink.wrap(ink.say(context.ceilings(d.ceilings)))
    lines += _asides("data", [x.defect for x in d.breakdown.defects], ink)
    lines += _asides("not split", d.breakdown.unsplit, ink)
    lines += _undecided(d.not_enough, ink)
    return lines


def seen(d: Diagnosis, ink: Ink) -> list[str]:
    """How much of the run was recorded, and at what cost; in colour where something is missing."""
    recording = d.breakdown.recording
    processes, hooked, lost = context.coverage(recording)
    worked_out = context.worked_out(d.breakdown)
    marks = ink.wrap(worked_out) if worked_out else []
    if processes is None:
        said = f"read from {recording.source}: how much of the run it covers is unknown"
        return ink.wrap(said, first="") + marks
    said = f"recorded {hooked} of {units.counted(processes, 'process')}"
    said += f", lost {units.counted(lost, 'record')}" if lost else ", lost nothing"
    cost = context.overhead(recording)
    if cost is not None:
        said += f"; time inside hooks {units.share(cost)} of the run"
    whole = hooked == processes and not lost
    lines = [line if whole else ink.warn(line) for line in ink.wrap(said)]
    return lines + marks + _asides("missed", context.troubles(recording), ink)


def _where(f: Finding) -> str:
    return f"{f.phase} {units.duration(f.ns)}, {units.share(f.share)} of the time"


def _slo(d: Diagnosis) -> str:
    pairs = (d.slo or {}).items()
    return ", ".join(f"{units.metric_name(m)} {units.duration(s * units.NS_PER_S)}" for m, s in pairs)


def _parts(p: PhaseTime, total: int, room: int) -> list[str]:
    """The largest parts of a phase, in lines no wider than the room; what is in none where it counts."""
    large = [t for t in p.parts if t.ns >= SMALL_PART * p.ns and t.ns >= SMALL_SHARE * total]
    named = sorted((t for t in large if t.part is not Part.OTHER), key=lambda t: -t.ns)[:MOST_PARTS]
    rest = [t for t in p.parts if t.part is Part.OTHER and (t in large or p.phase is Phase.DECODE)]
    return flow([f"{t.part} {units.share(t.ns / total)}" for t in (*named, *rest)], room)


def _head(ink: Ink, *titles: str) -> tuple[Cell, ...]:
    return tuple((title, ink.dim) for title in titles)


def _asides(title: str, sentences: Iterable[str], ink: Ink) -> list[str]:
    listed = list(sentences)
    lines: list[str] = []
    for sentence in listed[:MOST_ASIDES]:
        lines += [ink.warn(line) for line in ink.wrap(sentence, indent="  ", first=f"{title}: ")]
    if len(listed) > MOST_ASIDES:
        lines.append(f"{title}: {len(listed) - MOST_ASIDES} more")
    return lines


def _undecided(rules: tuple[NotEnoughData, ...], ink: Ink) -> list[str]:
    return [
        line
        for rule in rules[:MOST_ASIDES]
        for line in ink.wrap(f"{rule.cause}; missing: {rule.measure}", indent="  ", first="cannot tell ")
    ]


def joined(blocks: Iterable[list[str]]) -> str:
    """Blocks of lines, those that are not empty, with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"
