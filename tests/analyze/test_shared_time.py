"""Shared time is neither lost nor invented, and goes to those whom the planted cost says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze import breakdown
from phasetrace.model import Breakdown, Part, Phase
from tests.analyze.served import COST, served

SOME = st.builds(
    served,
    st.integers(0, 10_000),
    requests=st.integers(4, 16),
    slots=st.integers(1, 6),
    budget=st.sampled_from([64, 256, 2048]),
    noise=st.sampled_from([0.0, 0.2]),
    evict_every=st.sampled_from([0, 5, 23]),
)


def part(result: Breakdown, part: Part, phase: Phase = Phase.DECODE) -> int:
    return sum(r.part_ns(phase, part) for r in (*result.requests, *result.warm_up))


@given(SOME)
def test_time_is_conserved(recording) -> None:  # type: ignore[no-untyped-def]
    result = breakdown(recording)
    for request in (*result.requests, *result.warm_up):
        assert sum(phase.ns for phase in request.phases) == request.e2e_ns
        for phase in request.phases:
            assert all(time.ns >= 0 for time in phase.parts)
            assert not phase.parts or sum(time.ns for time in phase.parts) == phase.ns
            assert len({time.part for time in phase.parts}) == len(phase.parts)


@given(SOME)
def test_interference_sums_to_what_others_prefill_cost(recording) -> None:  # type: ignore[no-untyped-def]
    result = breakdown(recording)
    requests = (*result.requests, *result.warm_up)
    lost = part(result, Part.OTHERS_PREFILL)
    slack = len(result.interference) + 2 * len(requests)  # of rounding
    assert sum(pair.ns for pair in result.interference) == pytest.approx(lost, abs=slack)
    assert sum(r.stretched_others_ns or 0 for r in requests) == pytest.approx(lost, abs=slack)
    assert all(pair.request != pair.by for pair in result.interference)
    costs = [pair.ns for pair in result.interference]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("evict_every", [0, 13])
def test_parts_are_what_the_planted_cost_says(evict_every: int) -> None:
    recording = served(5, requests=40, evict_every=evict_every)
    result = breakdown(recording)
    assert not result.warm_up
    steps = recording.steps[0]
    decoders = steps.running * 0
    for r in recording.requests:
        chunks = {c.step for c in (*r.prefill_chunks, *r.recomputed)} | {
            y.step for y in r.yields if y.tokens == 0
        }
        own = np.arange(r.first_step or 0, (r.last_step or 0) + 1)
        decoders[[i for i in own if i not in chunks]] += 1
    fixed = COST[0] * decoders.sum()
    assert part(result, Part.FLOOR) > 0.98 * fixed
    peers = COST[1] * (decoders * (decoders - 1)).sum()
    assert part(result, Part.PEERS) > 0.95 * peers
    assert part(result, Part.FORWARD) < 0.01 * sum(r.phase_ns(Phase.DECODE) for r in result.requests)
    assert (part(result, Part.RECOMPUTE) > 0) == bool(evict_every)


def test_alone_in_the_engine_nobody_stretches_anybody() -> None:
    result = breakdown(served(4, slots=1))
    assert part(result, Part.OTHERS_PREFILL) == part(result, Part.PEERS) == 0
    assert result.interference == ()
    assert part(result, Part.FLOOR) > 0


def test_the_gap_between_steps_is_named() -> None:
    recording = served(4, slots=3)
    result = breakdown(recording)
    assert part(result, Part.HOST_GAP) > 0
    assert part(result, Part.OTHER) == 0


def test_a_prompt_in_chunks_waits_between_them() -> None:
    result = breakdown(served(6, requests=40, slots=8, budget=64))
    assert part(result, Part.BETWEEN_CHUNKS, Phase.PREFILL) > 0
    assert part(result, Part.PEERS, Phase.PREFILL) > 0
    assert part(result, Part.OTHERS_PREFILL, Phase.PREFILL) >= 0
