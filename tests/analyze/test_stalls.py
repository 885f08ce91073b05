"""Late tokens are found, and put down to what held them up."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from phasetrace.analyze import breakdown
from phasetrace.analyze.stall_patterns import period_ns
from phasetrace.model import Breakdown, Part, Pause, Recording, Stall, StallCause, Steps
from tests import builders
from tests.analyze.served import served
from tests.builders import EPOCH, MS, PROCESS

LATE_AT = 30
READS = (2_000_000.0, 100_000.0, 0.0, 200_000.0, 0.0)  # a step's cost where a prompt is what it spends


def stalled(part: Part, ms: float = 200.0, at: Sequence[int] = (LATE_AT,), count: int = 80) -> Steps:
    """Steps of 10 ms, some of which take so much longer, all of it in one part."""
    lengths = np.full(count, 10 * MS)
    extra = np.zeros(count, np.int64)
    extra[list(at)] = int(ms * MS)
    steps = builders.steps(count, ms=list((lengths + extra) / MS))
    columns = {Part.FORWARD: lengths // 2, Part.STREAM: lengths // 4, Part.UPDATE: lengths // 4}
    columns[part] = columns.get(part, np.zeros(count, np.int64)) + extra
    return replace(steps, parts=columns)


def recorded(steps: Steps, **fields: object) -> Recording:
    return builders.recording(builders.request(steps=steps), steps=[steps], **fields)


def only(result: Breakdown) -> Stall:
    (stall,) = result.stalls
    return stall


@pytest.mark.parametrize(
    ("part", "cause"),
    [
        (Part.STREAM, StallCause.CONSUMER),
        (Part.UPDATE, StallCause.HOST),
        (Part.LOGITS, StallCause.HOST),
        (Part.FORWARD, StallCause.UNKNOWN),
    ],
)
def test_the_part_that_took_long_is_the_cause(part: Part, cause: StallCause) -> None:
    steps = stalled(part)
    stall = only(breakdown(recorded(steps)))
    assert stall.cause is cause
    assert (stall.begin_ns, stall.end_ns) == (int(steps.end_ns[LATE_AT - 1]), int(steps.end_ns[LATE_AT]))
    assert stall.usual_ns == 10 * MS


def test_a_collection_is_the_cause() -> None:
    steps = stalled(Part.FORWARD)
    begin = int(steps.begin_ns[LATE_AT]) + MS
    result = breakdown(recorded(steps, pauses=(Pause(PROCESS, "gc", begin, begin + 195 * MS),)))
    assert only(result).cause is StallCause.GC


def test_a_forward_of_a_new_shape_compiles() -> None:
    steps = stalled(Part.FORWARD)
    running = np.where(np.arange(len(steps)) < LATE_AT, 2, 3)
    stall = only(breakdown(recorded(replace(steps, running=running))))
    assert stall.cause is StallCause.COMPILE


def test_an_eviction_is_the_cause() -> None:
    result = breakdown(served(3, requests=40, evict_every=19, budget=2048, cost=READS))
    evictions = [stall for stall in result.stalls if stall.cause is StallCause.PREEMPTION]
    assert evictions
    whose = {r.request.id for r in result.requests if r.request.preemptions}
    assert {stall.request for stall in evictions} <= whose


def test_a_neighbours_prompt_is_the_cause_and_named() -> None:
    recording = served(5, requests=40, budget=2048, cost=READS)
    result = breakdown(recording)
    assert result.stalls
    assert {stall.cause for stall in result.stalls} == {StallCause.OTHERS_PREFILL}
    known = {r.id: r for r in recording.requests}
    for stall in result.stalls:
        assert stall.by
        assert stall.request not in stall.by
        assert all(known[reader].scheduled_ns < stall.end_ns for reader in stall.by)  # type: ignore[operator]


@pytest.mark.parametrize("ms", [0.0, 15.0])
def test_ordinary_steps_are_no_stalls(ms: float) -> None:
    assert breakdown(recorded(stalled(Part.FORWARD, ms=ms))).stalls == ()


def test_few_tokens_have_no_usual_time() -> None:
    assert breakdown(recorded(stalled(Part.FORWARD, at=[3], count=6))).stalls == ()


def test_the_longest_comes_first() -> None:
    steps = stalled(Part.STREAM, at=[20, 50])
    longer = steps.parts[Part.STREAM].copy()
    longer[50] += 100 * MS
    lengths = sum(steps.parts.values()) - steps.parts[Part.STREAM] + longer
    ends = EPOCH + np.cumsum(lengths)
    steps = replace(steps, parts={**steps.parts, Part.STREAM: longer}, begin_ns=ends - lengths, end_ns=ends)
    assert [s.end_ns for s in breakdown(recorded(steps)).stalls] == [int(ends[50]), int(ends[20])]


def test_periodic_stalls_have_a_period() -> None:
    steps = stalled(Part.FORWARD, at=range(10, 80, 10))
    (pattern,) = breakdown(recorded(steps)).stall_patterns
    assert (pattern.cause, pattern.count) == (StallCause.UNKNOWN, 7)
    assert pattern.typical_ns == 210 * MS
    assert pattern.ns == 7 * 200 * MS
    assert pattern.period_ns == 300 * MS


def test_scattered_stalls_have_none() -> None:
    steps = stalled(Part.STREAM, at=[10, 15, 35, 41, 70])
    (pattern,) = breakdown(recorded(steps)).stall_patterns
    assert (pattern.count, pattern.period_ns) == (5, None)


def test_a_few_events_have_no_period() -> None:
    assert period_ns(np.arange(4) * 1000) is None
    assert period_ns(np.arange(5) * 1000) == 1000
