"""Cuts a request's wall clock into phases, and the phases into parts, so that both sum exactly.

The marks of a request bound its phases; the steps between two marks split a phase. A phase that steps do not
cover wholly keeps the rest in `other`; a phase without steps stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from phasetrace.analyze.step_parts import GC_COLUMN, OTHER_COLUMN, PART_ORDER
from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable, step_table
from phasetrace.model import Interval, Ints, Part, PartTime, Phase, PhaseTime, Recording, Request, recordable

HOW = " (`phasetrace run` does)"
IN_PROCESS = ("transformers",)  # what comes before a call is the application's own time
STEPPED = (Phase.PREFILL, Phase.DECODE, Phase.DELIVERY)  # phases that a request's own steps reach into
NOTHING = (0,) * len(PART_ORDER)
PLACE = {phase: place for place, phase in enumerate(Phase)}
EVICTABLE = (Phase.PREFILL, Phase.DECODE)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of a request's time that belongs to one phase."""

    phase: Phase
    begin_ns: int
    end_ns: int


@dataclass(slots=True)
class Share:
    """What is known of one phase of a request while it is added up. Columns are those of the step table."""

    ns: int = 0
    columns: list[int] = field(default_factory=lambda: list(NOTHING))
    named: tuple[PartTime, ...] = ()  # parts that no step holds


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


NO_STEPS = step_table(Recording())  # marks alone bound the phases
NO_PAUSES = PauseClock(np.zeros(0, np.int64), np.zeros(0, np.int64))


def phases(
    request: Request, table: StepTable = NO_STEPS, pauses: PauseClock = NO_PAUSES
) -> tuple[PhaseTime, ...]:
    """The phases in time order; they sum to finished - arrival, the parts of a phase to the phase."""
    rows = table.rows(request)
    found: dict[Phase, Share] = {}
    for stretch in stretches(request):
        share = found.get(stretch.phase)
        if share is None:
            share = found[stretch.phase] = Share()
        length = stretch.end_ns - stretch.begin_ns
        inside: Sequence[int] = NOTHING
        if rows is not None and stretch.phase in STEPPED:
            inside = _within(table, rows, stretch)
            share.columns = [x + y for x, y in zip(share.columns, inside, strict=True)]
        elif stretch.phase is Phase.QUEUE:
            share.named = _waiting(request, table, rows, stretch)
        stopped = pauses.between(stretch.begin_ns, stretch.end_ns) - inside[GC_COLUMN]
        share.ns += length
        share.columns[GC_COLUMN] += max(0, min(length - sum(inside) - _sum(share.named), stopped))
    found.setdefault(Phase.UNATTRIBUTED, Share())
    return tuple(
        PhaseTime(phase, share.ns, _parts(request, phase, share))
        for phase, share in sorted(found.items(), key=lambda item: PLACE[item[0]])
    )


def whole(request: Request, phase_times: Iterable[PhaseTime]) -> Iterator[str]:
    """What could not be split in this request, and which hook would split it."""
    how = HOW if recordable(request.engine) else ""
    known = {time.phase for time in phase_times if time.ns}
    if Phase.UNATTRIBUTED in known:
        if request.first_token_ns is None:
            yield f"prefill is not told from decode: record the time of the first token{how}"
        elif request.scheduled_ns is None:
            yield f"queue is not told from prefill: record when a request is first scheduled{how}"
        elif request.received_ns is None:
            yield f"frontend is not told from queue: record when the engine receives a request{how}"
    if Phase.DECODE in known and request.first_step is None:
        yield f"prefill and decode are whole: record the engine's steps{how}"
    if Phase.DECODE in known and request.last_token_ns is None:
        yield f"delivery is not told from decode: record the time of the last token{how}"


def stretches(request: Request) -> Iterator[Stretch]:
    """A finished request's phases as they followed each other, cut where it was evicted."""
    evicted = sorted(request.preemptions, key=lambda interval: interval.begin_ns)
    for stretch in _between_marks(request):
        if evicted and stretch.phase in EVICTABLE:
            yield from (piece for piece in _without(stretch, evicted) if piece.end_ns > piece.begin_ns)
        elif stretch.end_ns > stretch.begin_ns:
            yield stretch


def _between_marks(request: Request) -> Iterator[Stretch]:
    assert request.finished_ns is not None
    now = request.begin_ns

    def until(phase: Phase, mark: int) -> Stretch:
        nonlocal now
        begin, now = now, mark
        return Stretch(phase, begin, mark)

    if request.sent_ns is not None:
        yield until(Phase.CLIENT, request.arrival_ns)
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


def _within(table: StepTable, rows: Rows, stretch: Stretch) -> Sequence[int]:
    """Time of each part in the stretch; a step that a boundary cuts gives only what lies inside."""
    first, last = table.ending_after(rows, stretch.begin_ns), table.beginning_before(rows, stretch.end_ns)
    if last <= first:
        return NOTHING
    found = table.parts.spent(first, last)
    early = stretch.begin_ns - table.steps.began_ns(first)
    late = int(table.end_ns[last - 1]) - stretch.end_ns
    if early > 0:
        found -= _front(table.parts.spent(first, first + 1), early)
    if late > 0:
        found -= _front(table.parts.spent(last - 1, last)[::-1], late)[::-1]
    counted: list[int] = found.tolist()
    return counted


def _waiting(request: Request, table: StepTable, rows: Rows | None, stretch: Stretch) -> tuple[PartTime, ...]:
    """A wait is first for the step that was running, then for its grammar, then for the scheduler."""
    busy_until = _busy_until(request, table, rows, stretch)
    if busy_until is None and request.grammar_ns is None:
        return ()
    busy = min(stretch.end_ns, max(stretch.begin_ns, busy_until or 0))
    compiled = min(stretch.end_ns, max(busy, (request.received_ns or 0) + (request.grammar_ns or 0)))
    parts = (
        (Part.ENGINE_BUSY, busy - stretch.begin_ns),
        (Part.GRAMMAR, compiled - busy),
        (Part.SCHEDULER, stretch.end_ns - compiled if busy_until is not None else 0),
    )
    return tuple(PartTime(part, ns) for part, ns in parts if ns)


def _busy_until(request: Request, table: StepTable, rows: Rows | None, stretch: Stretch) -> int | None:
    """When the scheduler had it: said by itself, else when the step that was running ended."""
    if request.queued_ns is not None:
        return request.queued_ns
    stream = table.streams.get((request.process, request.stream or 0))
    if stream is None or stream == rows:
        return None
    at = table.ending_after(stream, stretch.begin_ns)
    if at == stream.end or table.steps.began_ns(at) > stretch.begin_ns:
        return None
    return int(table.end_ns[at])


def _front(parts: Ints, length: int) -> Ints:
    """What of each part lies in the first `length` nanoseconds."""
    ends = np.minimum(np.cumsum(parts), length)
    found: Ints = np.diff(ends, prepend=0)
    return found


def _sum(times: Iterable[PartTime]) -> int:
    return sum(time.ns for time in times)


def _parts(request: Request, phase: Phase, share: Share) -> tuple[PartTime, ...]:
    """The parts of a phase; what is in none is `other`, or before a call the application's."""
    named = list(share.named)
    columns = share.columns
    rest = share.ns - sum(columns) - _sum(named)
    if phase is Phase.FRONTEND and (request.tokenize_ns is not None or request.engine in IN_PROCESS):
        tokenize = min(request.tokenize_ns or 0, rest)
        application = rest - tokenize if request.engine in IN_PROCESS else 0
        named += [PartTime(Part.TOKENIZE, tokenize), PartTime(Part.APPLICATION, application)]
        rest -= tokenize + application
    elif phase is Phase.DELIVERY and request.detokenize_ns is not None:
        detokenize = min(request.detokenize_ns, rest)
        named.append(PartTime(Part.DETOKENIZE, detokenize))
        rest -= detokenize
    elif not named and rest + columns[GC_COLUMN] == share.ns:
        return ()
    columns[OTHER_COLUMN] += rest
    stepped = [PartTime(part, ns) for part, ns in zip(PART_ORDER, columns, strict=True) if ns]
    return tuple([time for time in named if time.ns] + stepped)
