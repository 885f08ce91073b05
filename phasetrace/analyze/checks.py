"""Contradictions in the data. A request that contradicts itself is named and kept out of all statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from phasetrace.analyze.step_rows import Rows
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
MOST_TOKENS = 1 << 30  # of a request: its attention, about their square, has to fit into 64 bits
LONGEST_NS = 366 * 86_400 * 1_000_000_000  # a year: nobody waits so long for an answer
OWN = "phasetrace"
NO_CONFIG = (
    "the trace does not say the engine's knobs, the model, or the hardware, which most causes need:"
    " `--engine-config FILE`, the server's log or JSON, states them"
)
MOST_NAMED = 5  # defects of one kind that are spelled out; the rest are counted


class BrokenSteps:
    """The rows of steps that contradict themselves; there are next to none."""

    def __init__(self, table: StepTable) -> None:
        steps = table.steps
        apart, begins = steps.apart
        self._table = table
        self._backwards = table.parts.backwards
        # Each row against the one before it. The first step of a stream may lie before the last of another:
        # those are no pair, and a request's first row is not asked about.
        self._overlaps = apart[begins < np.concatenate([begins[:1], steps.end_ns[apart[1:] - 1]])]
        pairs = zip(steps.starts[1:], pairwise(steps.pieces), strict=False)
        self._twice = np.array(
            [row for row, (a, b) in pairs if b.first_index < a.first_index + a.size], np.int64
        )

    def within(self, request: Request) -> Iterator[str]:
        """What is wrong with the steps of a request."""
        rows = self._table.rows(request)
        if rows is None:
            return
        later = Rows(rows.begin + 1, rows.end)
        if _any(self._backwards, rows) or _any(self._overlaps, later):
            yield "does not close: its steps overlap or run backwards"
        elif _any(self._table.parts.unequal, rows):
            yield "does not close: the parts of its steps do not add up to the steps"
        if _any(self._twice, later):
            yield "has a step twice"


def _any(broken: Ints, rows: Rows) -> bool:
    """Whether one of these lies in the rows."""
    return bool(len(broken)) and bool(broken.searchsorted(rows.begin) < broken.searchsorted(rows.end))


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
    if _lacks_config(recording):
        found.append(Defect(NO_CONFIG))
    missing = sum(_missing_steps(request, table) for request in recording.requests)
    if missing:
        found.append(Defect(f"{missing:,} steps are missing between recorded ones: their time is in `other`"))
    return tuple(found)


def _lacks_config(recording: Recording) -> bool:
    """Whether an engine told of its requests, and nobody of what it is and runs on."""
    stated = bool(recording.models) or any(process.facts for process in recording.processes)
    return recording.source != OWN and not stated and any(r.scheduled_ns for r in recording.requests)


def _faults(request: Request, broken: BrokenSteps) -> Iterator[str]:
    yield from _disorder(request, MARKS)
    if request.sent_ns is not None:
        yield from _disorder(request, ("sent_ns", "arrival_ns"))
    if request.first_output_ns is not None:
        yield from _disorder(request, HANDED)
    yield from _impossible_counts(request)
    if request.status is not RequestStatus.OK:
        return
    if request.finished_ns is None:
        yield "has no end: the span that closes it is missing"
        return
    if request.finished_ns == request.arrival_ns:
        yield "took no time at all: impossible"
    if request.finished_ns - request.begin_ns > LONGEST_NS:
        yield "took more than a year: one of its times is wrong"
    yield from _contradicting_counts(request)
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
            if count is not None and not 0 <= count < MOST_TOKENS:
                yield f"counts {count:,} {name.replace('_', ' ')}: impossible"
    read = sum(chunk.tokens for chunk in (*request.prefill_chunks, *request.recomputed))
    for count, name in ((request.cached_tokens or 0, "cached"), (read, "prefilled")):
        if not 0 <= count < MOST_TOKENS:
            yield f"counts {count:,} {name} tokens: impossible"


def _contradicting_counts(request: Request) -> Iterator[str]:
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
