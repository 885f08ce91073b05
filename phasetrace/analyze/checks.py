"""Contradictions in the data. A request that contradicts itself is named and kept out of all statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Defect, Ints, Recording, Request, RequestStatus

MARKS = (
    "arrival_ns",
    "received_ns",
    "queued_ns",
    "scheduled_ns",
    "first_token_ns",
    "last_token_ns",
    "finished_ns",
)
HANDED = ("first_token_ns", "first_output_ns", "finished_ns")
FASTEST_TOKEN_NS = (
    1_000  # a sequence's tokens come from steps, and no device starts and ends a step in a microsecond
)
LONGEST_NS = 366 * 86_400 * 1_000_000_000  # a year: nobody waits so long for an answer
MOST_NAMED = 5  # defects of one kind that are spelled out; the rest are counted


class BrokenSteps:
    """Steps that contradict themselves, counted up over the table: two look-ups count a request's."""

    def __init__(self, table: StepTable) -> None:
        lengths = table.end_ns - table.begin_ns
        backwards = lengths < 0
        # The first step of a stream may lie before the last of another: those are no pair. A request's first
        # row is not compared with the row before it, so what counts here is only what lies inside its own
        # rows.
        overlaps = np.zeros(len(lengths), np.bool_)
        overlaps[1:] = table.begin_ns[1:] < table.end_ns[:-1]
        twice = np.zeros(len(lengths), np.bool_)
        twice[1:] = table.index[1:] == table.index[:-1]
        self._table = table
        self._alone = _counted_up(backwards)
        self._parts = _counted_up(table.parts.sum(axis=1) != lengths)
        self._overlaps = _counted_up(overlaps)
        self._twice = _counted_up(twice)

    def within(self, request: Request) -> Iterator[str]:
        """What is wrong with the steps of a request."""
        rows = self._table.rows(request)
        if rows is None:
            return
        begin, second, end = rows.begin, rows.begin + 1, rows.end
        if self._alone[end] > self._alone[begin] or self._overlaps[end] > self._overlaps[second]:
            yield "does not close: its steps overlap or run backwards"
        elif self._parts[end] > self._parts[begin]:
            yield "does not close: the parts of its steps do not add up to the steps"
        if self._twice[end] > self._twice[second]:
            yield "has a step twice"


def _counted_up(flags: npt.NDArray[np.bool_]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(flags)])


def refused(recording: Recording, table: StepTable) -> tuple[frozenset[int], tuple[Defect, ...]]:
    """Positions of the requests that contradict themselves, and the contradictions in words."""
    broken = BrokenSteps(table)
    bad: set[int] = set()
    sentences: list[str] = []
    copies = Counter(request.id for request in recording.requests)
    seen: set[str] = set()
    for position, request in enumerate(recording.requests):
        faults = list(_faults(request, broken))
        if copies[request.id] > 1:
            if request.id in seen:
                faults.append(f"is in the trace {copies[request.id]} times; counted once")
            seen.add(request.id)
        if faults:
            bad.add(position)
            sentences += [f"request {request.id} {fault}" for fault in faults]
    return frozenset(bad), tuple(Defect(sentence) for sentence in _shortened(sentences))


def beside(recording: Recording, table: StepTable) -> tuple[Defect, ...]:
    """What is missing without contradicting anything: lost records and steps."""
    found = list(recording.defects)
    lost = sum(process.lost_records for process in recording.processes)
    if lost:
        found.append(
            Defect(f"{lost:,} records were lost while recording: times of the steps they held are in `other`")
        )
    missing = sum(_missing_steps(request, table) for request in recording.requests)
    if missing:
        found.append(Defect(f"{missing:,} steps are missing between recorded ones: their time is in `other`"))
    return tuple(found)


def _faults(request: Request, broken: BrokenSteps) -> Iterator[str]:
    yield from _disorder(request, MARKS)
    if request.sent_ns is not None:
        yield from _disorder(request, ("sent_ns", "arrival_ns"))
    if request.first_output_ns is not None:
        yield from _disorder(request, HANDED)
    if request.status is not RequestStatus.OK:
        return
    if request.finished_ns is None:
        yield "has no end: the span that closes it is missing"
        return
    if request.finished_ns == request.arrival_ns:
        yield "took no time at all: impossible"
    if request.finished_ns - request.begin_ns > LONGEST_NS:
        yield "took more than a year: one of its times is wrong"
    yield from _impossible_counts(request)
    yield from broken.within(request)


def _disorder(request: Request, marks: tuple[str, ...]) -> Iterator[str]:
    known = [(mark, getattr(request, mark)) for mark in marks if getattr(request, mark) is not None]
    for (earlier, before), (later, after) in zip(known, known[1:], strict=False):
        if after < before:
            yield (
                f"contradicts itself: {_spoken(later)} is {(before - after) / 1e9:.3f} s before"
                f" {_spoken(earlier)} (negative duration); record it again with one clock"
            )


def _impossible_counts(request: Request) -> Iterator[str]:
    for sequence in request.sequences:
        for name in ("prompt_tokens", "padding_tokens", "output_tokens"):
            count = getattr(sequence, name)
            if count is not None and count < 0:
                yield f"counts {count} {name.replace('_', ' ')}: impossible"
    longest, first, last = request.longest_output, request.first_token_ns, request.last_token_ns
    if longest is not None and longest > 1 and first is not None and last is not None:
        each = (last - first) / (longest - 1)
        if each < FASTEST_TOKEN_NS and not request.yields:
            yield f"wrote {longest:,} tokens in {(last - first) / 1e6:.3f} ms: an impossible rate"
    prompt = request.prompt_tokens
    if request.cached_tokens is not None and prompt is not None and request.cached_tokens > prompt:
        yield f"has {request.cached_tokens:,} cached tokens in a prompt of {prompt:,}: impossible"


def _missing_steps(request: Request, table: StepTable) -> int:
    rows = table.rows(request)
    if rows is None or request.first_step is None or request.last_step is None:
        return 0
    return max(0, request.last_step - request.first_step + 1 - len(rows))


def _shortened(sentences: list[str]) -> list[str]:
    if len(sentences) <= MOST_NAMED:
        return sentences
    return [
        *sentences[:MOST_NAMED],
        f"and {len(sentences) - MOST_NAMED:,} more requests that contradict themselves",
    ]


def _spoken(mark: str) -> str:
    return mark.removesuffix("_ns").replace("_", " ")
