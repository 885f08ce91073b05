"""One request as a waterfall: phases on a time axis, prefill chunks, gaps between tokens, stalls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phasetrace.model import (
    ModelFacts,
    Phase,
    Provenance,
    Recording,
    Request,
    RequestBreakdown,
    RequestStatus,
)
from phasetrace.render import token_times, units
from phasetrace.render.axis import axis
from phasetrace.render.ink import Ink, columns
from phasetrace.render.timeline import Timeline, timeline

LABEL = 14  # columns left of the bars: "  unattributed"
FIGURE = 10  # columns right of them: "  12.3 min"
MOST_CHUNKS = 8
MOST_SEQUENCES = 16
MOST_LISTED = 200

_MOMENTS = {
    "arrival_ns": "arrival",
    "received_ns": "received by the engine",
    "scheduled_ns": "scheduled",
    "first_token_ns": "first token",
    "last_token_ns": "last token",
    "finished_ns": "end",
    "cached_tokens": "cached tokens",
}


def request(
    r: RequestBreakdown, recording: Recording, width: int = 80, color: bool = False, ascii: bool = False
) -> str:
    """A request whose time is known, from arrival to the last byte handed over."""
    ink = Ink(width, color, ascii)
    steps = timeline(r.request, recording)
    blocks = [
        _title(r.request, recording, ink, r),
        _bars(r, steps, ink),
        token_times.stalls(r.request, steps, recording, ink) if steps is not None else [],
        _sequences(r.request, ink),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def unfinished(
    r: Request, recording: Recording, width: int = 80, color: bool = False, ascii: bool = False
) -> str:
    """A request that failed or was cut off: its time has no phases, but much is known."""
    ink = Ink(width, color, ascii)
    steps = timeline(r, recording)
    came = steps.token_ns.tolist() if steps is not None and r.first_token_ns is not None else []
    told = f"{units.counted(len(came), 'step')} gave tokens"
    if len(came):
        told += f", the last {units.duration(int(came[-1]) - r.arrival_ns)} after arrival"
    stalls = token_times.stalls(r, steps, recording, ink) if steps is not None else []
    blocks = [[*_title(r, recording, ink), *ink.wrap(told)], stalls, _sequences(r, ink)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def listing(requests: list[RequestBreakdown], failed: tuple[Request, ...] = (), ascii: bool = False) -> str:
    """A line a request, in the order given."""
    ink = Ink(ascii=ascii)
    rows: list[tuple[str, ...]] = [("request", "e2e", "TTFT", "prompt", "output", "")]
    for r in requests[:MOST_LISTED]:
        tokens = (units.count(r.request.prompt_tokens), units.count(r.request.output_tokens))
        times = (units.duration(r.e2e_ns), units.duration(r.ttft_ns))
        rows.append((ink.say(r.request.id), *times, *tokens, "warm-up" if r.warm_up else ""))
    for f in failed[: max(0, MOST_LISTED - len(requests))]:
        tokens = (units.count(f.prompt_tokens), units.count(f.output_tokens))
        rows.append((ink.say(f.id), "", "", *tokens, f.status.value))
    lines = columns([tuple(map(ink.say, row)) for row in rows], right=(1, 2, 3, 4), indent="")
    hidden = len(requests) + len(failed) - len(rows) + 1
    return "\n".join([*lines, f"and {hidden} more"] if hidden > 0 else lines) + "\n"


def _title(r: Request, recording: Recording, ink: Ink, b: RequestBreakdown | None = None) -> list[str]:
    facts = recording.models.get(r.model or "", ModelFacts(r.model or ""))
    what = [
        f"request {r.id}",
        " ".join(filter(None, (r.engine, r.mode))),
        facts.name or facts.architecture or facts.key,
    ]
    if b is not None:
        what += [f"e2e {units.duration(b.e2e_ns)}", f"TTFT {units.duration(b.ttft_ns)}"]
        what += [f"TPOT {units.duration(b.tpot_ns)}"] if b.tpot_ns is not None else []
        what += ["warm-up"] if b.warm_up else []
    if r.status is not RequestStatus.OK:
        what.append(f"{r.status} ({r.error_type})" if r.error_type else r.status.value)
    lines = [ink.bold(line) for line in ink.wrap(", ".join(filter(None, what)))]
    return (
        lines
        + [ink.dim(line) for line in ink.wrap(_tokens(r))]
        + _settings(r, ink)
        + _marks(r, recording, ink)
    )


def _tokens(r: Request) -> str:
    padding = sum(s.padding_tokens or 0 for s in r.sequences)
    apart = [f"+ {units.count(padding)} padding"] * bool(padding)
    apart += [f"{units.count(r.cached_tokens)} cached"] * bool(r.cached_tokens)
    said = f"prompt {units.counted(r.prompt_tokens, 'token')}" + (f" ({', '.join(apart)})" if apart else "")
    said += f", output {units.counted(r.output_tokens, 'token')}"
    said += f" in {len(r.sequences)} sequences" if len(r.sequences) > 1 else ""
    return said + (f", ended by {r.finish_reason}" if r.finish_reason else "")


def _settings(r: Request, ink: Ink) -> list[str]:
    said = ", ".join(f"{name} {str(value).lower()}" for name, value in sorted(r.settings.items()))
    return [ink.dim(line) for line in ink.wrap(said)] if said else []


def _marks(r: Request, recording: Recording, ink: Ink) -> list[str]:
    """Which moments nobody saw on a clock; what our own recordings lack, the engine has not."""
    foreign = recording.source != "phasetrace"
    found = []
    for mark in (Provenance.DERIVED, *([Provenance.UNKNOWN] if foreign else [])):
        if names := [said for name, said in _MOMENTS.items() if r.provenance(name) is mark]:
            found.append(f"{mark}: {', '.join(names)}")
    return [ink.dim(line) for line in ink.wrap("; ".join(found))] if found else []


def _bars(r: RequestBreakdown, steps: Timeline | None, ink: Ink) -> list[str]:
    room = max(10, ink.width - LABEL - FIGURE - 1)
    lines = [axis(r.e2e_ns, room, LABEL, ink)]
    at = 0
    for p in r.phases:
        if p.ns <= 0:
            continue
        bar = _bar(p.phase, at, at + p.ns, r.e2e_ns, room, ink)
        lines.append(_row(p.phase.value, bar, units.duration(p.ns), room, ink))
        if steps is not None and p.phase is Phase.PREFILL:
            lines += _chunks(r, steps, room, ink)
        if steps is not None and p.phase is Phase.DECODE and len(steps.gaps):
            lines += _gaps(r, steps, room, ink)
        at += p.ns
    return lines


def _bar(phase: Phase, begin: int, end: int, total: int, room: int, ink: Ink) -> tuple[int, str, int]:
    left = min(room - 1, max(0, round(room * begin / total)))
    width = max(1, min(room, round(room * end / total)) - left)
    return left, ink.fill(phase, width), room - left - width


def _row(label: str, bar: tuple[int, str, int], figure: str, room: int, ink: Ink) -> str:
    left, fill, right = bar
    return f"  {label:<{LABEL - 2}}{' ' * left}{fill}{' ' * right} {ink.say(figure):>{FIGURE - 1}}"


def _chunks(r: RequestBreakdown, steps: Timeline, room: int, ink: Ink) -> Iterator[str]:
    chunks = r.request.prefill_chunks
    if len(chunks) < 2:
        return
    for number, chunk in enumerate(chunks[:MOST_CHUNKS], start=1):
        took = steps.chunk(chunk.step)
        if took is None:
            continue
        begin, end = (t - r.request.begin_ns for t in took)
        bar = _bar(Phase.PREFILL, begin, end, r.e2e_ns, room, ink)
        yield _row(f"  chunk {number}", bar, f"{units.count(chunk.tokens)} tok", room, ink)
    if len(chunks) > MOST_CHUNKS:
        yield f"    {len(chunks) - MOST_CHUNKS} more chunks"


def _gaps(r: RequestBreakdown, steps: Timeline, room: int, ink: Ink) -> list[str]:
    """The longest gap in each column of the axis, so that no stall hides between two columns."""
    came = steps.token_ns - r.request.begin_ns
    edges = np.linspace(0, r.e2e_ns, room + 1)
    heights = []
    for left, right in zip(edges[:-1], edges[1:], strict=True):
        if right <= came[0] or left >= came[-1]:
            heights.append(0.0)
            continue
        first = max(0, int(np.searchsorted(came, left, "right")) - 1)
        last = min(len(steps.gaps), int(np.searchsorted(came, right, "left")))
        heights.append(float(steps.gaps[first : max(last, first + 1)].max()))
    line = ink.sparkline(heights)
    typical, longest = float(np.median(steps.gaps)), int(steps.gaps.max())
    said = f"median {units.duration(typical)}, longest {units.duration(longest)}"
    marks = token_times.marks(token_times.longest(steps), r.request.begin_ns, r.e2e_ns, room)
    return [
        f"    {'ITL':<{LABEL - 4}}" + line.rstrip(),
        *([f"    {'stalls':<{LABEL - 4}}{marks}"] if marks else []),
        ink.dim(" " * LABEL + ink.say(said)),
    ]


def _sequences(r: Request, ink: Ink) -> list[str]:
    if len(r.sequences) < 2:
        return []
    rows: list[tuple[str, ...]] = [("sequence", "prompt", "padding", "output", "ended by")]
    for number, s in enumerate(r.sequences[:MOST_SEQUENCES], start=1):
        figures = map(units.count, (s.prompt_tokens, s.padding_tokens, s.output_tokens))
        rows.append((str(number), *figures, ink.say(s.finish_reason or units.UNKNOWN)))
    lines = columns(rows, right=(0, 1, 2, 3))
    hidden = len(r.sequences) - MOST_SEQUENCES
    return [*lines, f"  and {hidden} more"] if hidden > 0 else lines
