"""Cuts a request's wall clock into phases, and the phases into parts, so that both sum exactly.

The marks of a request bound its phases; the steps between two marks split a phase. A phase that steps do not
cover wholly keeps the rest in `other`; a phase without steps stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from phasetrace.analyze.step_table import GC_COLUMN, PART_ORDER, Rows, StepTable
from phasetrace.model import Interval, Ints, Part, PartTime, Phase, PhaseTime, Request

HOW = "(`phasetrace run` does)"
IN_PROCESS = ("transformers",)  # what comes before a call is the application's own time
STEPPED = (Phase.PREFILL, Phase.DECODE, Phase.DELIVERY)  # phases that a request's own steps reach into
EVICTABLE = (Phase.PREFILL, Phase.DECODE)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a request's time that belongs to one phase."""

    phase: Phase
    begin_ns: int
    end_ns: int


class PauseClock:
    """How long a process stood still between any two times."""

    def __init__(self, begins: Ints, ends: Ints) -> None:
        self._begins = begins
        self._ends = ends
        self._sums = np.concatenate([[0], np.cumsum(ends - begins)])

    def between(self, begin: int, end: int) -> int:
        """Nanoseconds of pause in [begin, end)."""
        return self._until(end) - self._until(begin)

    def _until(self, time: int) -> int:
        passed = int(self._begins.searchsorted(time))
        if passed == 0:
            return 0
        return int(self._sums[passed]) - max(0, int(self._ends[passed - 1]) - time)


NO_PAUSES = PauseClock(np.zeros(0, np.int64), np.zeros(0, np.int64))


def phases(request: Request, table: StepTable, pauses: PauseClock = NO_PAUSES) -> tuple[PhaseTime, ...]:
    """The phases in time order; they sum to finished - arrival, the parts of a phase to the phase."""
    rows = table.rows(request)
    total: dict[Phase, int] = {}
    split: dict[Phase, dict[Part, int]] = {}
    paused: dict[Phase, int] = {}
    for stretch in _stretches(request):
        length = stretch.end_ns - stretch.begin_ns
        total[stretch.phase] = total.get(stretch.phase, 0) + length
        covered = 0
        in_steps = 0
        if rows is not None and stretch.phase in STEPPED:
            found = _within(table, rows, stretch)
            covered = int(found.sum())
            in_steps = int(found[GC_COLUMN])
            _add(split.setdefault(stretch.phase, {}), found)
        elif stretch.phase is Phase.QUEUE:
            split[Phase.QUEUE] = _waiting(request, table, stretch)
            covered = sum(split[Phase.QUEUE].values())
        outside = min(length - covered, pauses.between(stretch.begin_ns, stretch.end_ns) - in_steps)
        paused[stretch.phase] = paused.get(stretch.phase, 0) + max(0, outside)
    total.setdefault(Phase.UNATTRIBUTED, 0)
    return tuple(
        PhaseTime(
            phase,
            total[phase],
            _parts(request, phase, total[phase], split.get(phase, {}), paused.get(phase, 0)),
        )
        for phase in Phase
        if phase in total
    )


def whole(request: Request, phase_times: Iterable[PhaseTime]) -> Iterator[str]:
    """What could not be split in this request, and which hook would split it."""
    known = {time.phase for time in phase_times if time.ns}
    if Phase.UNATTRIBUTED in known:
        if request.first_token_ns is None:
            yield f"prefill is not told from decode: record the time of the first token {HOW}"
        elif request.scheduled_ns is None:
            yield f"queue is not told from prefill: record when a request is first scheduled {HOW}"
        elif request.received_ns is None:
            yield f"frontend is not told from queue: record when the engine receives a request {HOW}"
    if Phase.DECODE in known and request.first_step is None:
        yield f"prefill and decode are whole: record the engine's steps {HOW}"
    if Phase.DECODE in known and request.last_token_ns is None:
        yield f"delivery is not told from decode: record the time of the last token {HOW}"


def _stretches(request: Request) -> Iterator[Stretch]:
    """Phases between the marks that are known; evicted time is cut out of the phase it interrupts."""
    evicted = sorted(request.preemptions, key=lambda interval: interval.begin_ns)
    for stretch in _between_marks(request):
        pieces = _without(stretch, evicted) if stretch.phase in EVICTABLE else (stretch,)
        yield from (piece for piece in pieces if piece.end_ns > piece.begin_ns)


def _between_marks(request: Request) -> Iterator[Stretch]:
    assert request.finished_ns is not None
    now = request.arrival_ns

    def until(phase: Phase, mark: int) -> Stretch:
        nonlocal now
        begin, now = now, mark
        return Stretch(phase, begin, mark)

    if request.received_ns is not None:
        yield until(Phase.FRONTEND, request.received_ns)
    if request.scheduled_ns is not None:
        known = request.received_ns is not None
        yield until(Phase.QUEUE if known else Phase.UNATTRIBUTED, request.scheduled_ns)
    if request.first_token_ns is not None:
        known = request.scheduled_ns is not None
        yield until(Phase.PREFILL if known else Phase.UNATTRIBUTED, request.first_token_ns)
        last = request.finished_ns if request.last_token_ns is None else request.last_token_ns
        yield until(Phase.DECODE, last)
        yield until(Phase.DELIVERY, request.finished_ns)
    else:
        asked_nothing = request.output_tokens == 0 and request.scheduled_ns is not None
        yield until(Phase.PREFILL if asked_nothing else Phase.UNATTRIBUTED, request.finished_ns)


def _without(stretch: Stretch, evicted: list[Interval]) -> Iterator[Stretch]:
    now = stretch.begin_ns
    for interval in evicted:
        begin, end = max(now, interval.begin_ns), min(stretch.end_ns, interval.end_ns)
        if end <= begin:
            continue
        if begin > now:
            yield Stretch(stretch.phase, now, begin)
        yield Stretch(Phase.PREEMPTED, begin, end)
        now = end
    yield Stretch(stretch.phase, now, stretch.end_ns)


def _within(table: StepTable, rows: Rows, stretch: Stretch) -> Ints:
    """Time of each part in the stretch; a step that a boundary cuts gives only what lies inside."""
    ends = table.end_ns[rows.begin : rows.end]
    begins = table.begin_ns[rows.begin : rows.end]
    first = rows.begin + int(ends.searchsorted(stretch.begin_ns, side="right"))
    last = rows.begin + int(begins.searchsorted(stretch.end_ns))
    if last <= first:
        return np.zeros(len(PART_ORDER), np.int64)
    found: Ints = table.sums[last] - table.sums[first]
    early = stretch.begin_ns - int(table.begin_ns[first])
    late = int(table.end_ns[last - 1]) - stretch.end_ns
    if early > 0:
        found -= _front(table.parts[first], early)
    if late > 0:
        found -= _front(table.parts[last - 1][::-1], late)[::-1]
    return found


def _add(total: dict[Part, int], found: Ints) -> None:
    for part, value in zip(PART_ORDER, found.tolist(), strict=True):
        total[part] = total.get(part, 0) + value


def _waiting(request: Request, table: StepTable, stretch: Stretch) -> dict[Part, int]:
    """A wait is first for the end of the step that was running, then for the scheduler."""
    stream = table.streams.get((request.process, request.stream or 0))
    if stream is None or stream == table.rows(request):
        return {}
    ends = table.end_ns[stream.begin : stream.end]
    at = int(ends.searchsorted(stretch.begin_ns, side="right"))
    if at == len(ends) or int(table.begin_ns[stream.begin + at]) > stretch.begin_ns:
        return {}
    busy = min(stretch.end_ns, int(ends[at])) - stretch.begin_ns
    return {Part.ENGINE_BUSY: busy, Part.SCHEDULER: stretch.end_ns - stretch.begin_ns - busy}


def _front(parts: Ints, length: int) -> Ints:
    """What of each part lies in the first `length` nanoseconds."""
    ends = np.minimum(np.cumsum(parts), length)
    found: Ints = np.diff(ends, prepend=0)
    return found


def _parts(
    request: Request, phase: Phase, ns: int, split: dict[Part, int], paused: int
) -> tuple[PartTime, ...]:
    found = {part: value for part, value in split.items() if value}
    rest_is = Part.OTHER
    if phase is Phase.FRONTEND and (request.tokenize_ns is not None or request.engine in IN_PROCESS):
        rest_is = Part.APPLICATION if request.engine in IN_PROCESS else Part.OTHER
        if request.tokenize_ns:
            found[Part.TOKENIZE] = min(request.tokenize_ns, ns)
    elif phase is Phase.DELIVERY and request.detokenize_ns is not None:
        found[Part.DETOKENIZE] = min(request.detokenize_ns, ns - sum(found.values()))
    elif not found:
        return ()
    rest = ns - sum(found.values())
    gc = min(paused, rest)
    if gc:
        found[Part.GC] = found.get(Part.GC, 0) + gc
    if rest - gc:
        found[rest_is] = found.get(rest_is, 0) + rest - gc
    return tuple(PartTime(part, value) for part, value in found.items())
