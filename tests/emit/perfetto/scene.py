"""A server with all that a viewer shows: a neighbour's prompt, a preemption, a failure, a pause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from phasetrace import analyze
from phasetrace.model import (
    Breakdown,
    Interval,
    Pause,
    Request,
    RequestStatus,
    Stage,
    Stall,
    StallCause,
    StepCount,
)
from phasetrace.model import Sequence as Row
from tests.builders import EPOCH, MS, PROCESS, recording, request, steps

STEPS_MS = [40, 10, 10, 60.000001, 60, 10, 10, 10, 25, 10]


def server() -> Breakdown:
    """`first` decodes while `second` reads its prompt in two chunks; `third` fails while it waits."""
    taken = steps(10, ms=STEPS_MS, rows=2)
    taken = replace(
        taken,
        running=np.array([1, 1, 1, 2, 2, 2, 2, 2, 1, 1]),
        waiting=np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        kv_blocks=np.array([4, 4, 4, 9, 14, 14, 14, 14, 4, 4]),
        computed_tokens=np.array([64, 1, 1, 401, 301, 2, 2, 1, 1, 1]),
    )
    ends = taken.end_ns.tolist()
    first = served("first", taken, 0, 9, prefill_chunks=(StepCount(0, 64),), frontend_ms=3)
    first = replace(first, preemptions=(Interval(ends[6] + 7, ends[7]),))
    second = served("second", taken, 3, 6, (StepCount(3, 400), StepCount(4, 300)), queue_ms=12)
    third = replace(served("third", taken, 4, 5, ()), status=RequestStatus.FAILED, error_type="ValueError")
    pauses = [Pause(PROCESS, "gc", ends[7] + MS, ends[7] + 9 * MS, {"generation": 2})]
    stages = (Stage(PROCESS, "model-load", EPOCH - 900 * MS, EPOCH - 400 * MS),)
    found = analyze.breakdown(
        recording(first, second, third, steps=[taken], pauses=tuple(pauses), stages=stages)
    )
    late = Stall("first", ends[2], ends[3], 10 * MS, StallCause.OTHERS_PREFILL, ("second", "gone"))
    return replace(found, stalls=(late, replace(late, begin_ns=ends[3], end_ns=ends[4])))


def served(
    name: str, taken: Any, first: int, last: int, prefill_chunks: tuple[StepCount, ...], **waits: float
) -> Request:
    """A request over some steps of its engine, with the marks that follow."""
    read = prefill_chunks[-1].step if prefill_chunks else first
    made = request(name, begin=EPOCH)
    begin = int(taken.begin_ns[first])
    received = begin - int(waits.get("queue_ms", 0) * MS)
    return replace(
        made,
        engine="vllm",
        arrival_ns=received - int(waits.get("frontend_ms", 0) * MS),
        received_ns=received,
        scheduled_ns=begin,
        first_token_ns=int(taken.end_ns[read]),
        last_token_ns=int(taken.end_ns[last]),
        finished_ns=int(taken.end_ns[last]) + 123,
        stream=taken.stream,
        first_step=first,
        last_step=last,
        prefill_chunks=prefill_chunks,
        yields=tuple(StepCount(chunk.step, 0) for chunk in prefill_chunks[:-1]),
        sequences=(Row(sum(c.tokens for c in prefill_chunks), 0, last - read + 1, "length"),),
    )
