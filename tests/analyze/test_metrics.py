"""Percentiles and throughput mean what the field means by them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze import breakdown
from phasetrace.analyze.metrics import weighted
from phasetrace.model import Percentiles, Phase, StepCount
from tests import builders
from tests.builders import EPOCH, MS


def test_one_request() -> None:
    steps = builders.steps(11, ms=[50, *[10] * 10])
    result = breakdown(builders.recording(builders.request(steps=steps), steps=[steps]))
    assert result.metrics["ttft_ns"].p50 == 50 * MS
    assert result.metrics["tpot_ns"].p50 == 10 * MS
    assert result.metrics["itl_ns"].p99 == 10 * MS
    assert result.throughput_tok_s == pytest.approx(11 / 0.150)


def test_the_user_has_the_first_token_when_it_is_handed_over() -> None:
    steps = builders.steps(11, ms=[50, *[10] * 10])
    request = builders.request(steps=steps, delivery_ms=4, first_output_ns=EPOCH + 54 * MS)
    result = breakdown(builders.recording(request, steps=[steps]))
    assert result.metrics["ttft_ns"].p50 == 54 * MS
    assert result.metrics["tpot_ns"].p50 == 10 * MS
    (one,) = result.requests
    assert one.first_delivery_ns == 4 * MS
    assert sum(phase.ns for phase in one.phases) == one.e2e_ns == 154 * MS
    assert one.phase_ns(Phase.PREFILL) == 50 * MS


def test_an_answer_that_comes_all_at_once_was_written_at_the_pace_of_the_engine() -> None:
    steps = builders.steps(11, ms=[50, *[10] * 10])
    request = builders.request(steps=steps, delivery_ms=4, first_output_ns=EPOCH + 154 * MS)
    result = breakdown(builders.recording(request, steps=[steps]))
    assert result.metrics["ttft_ns"].p50 == 154 * MS
    assert result.metrics["tpot_ns"].p50 == 10.4 * MS


def test_steps_that_yield_several_tokens_share_their_time() -> None:
    steps = builders.steps(3, ms=[50, 30, 40])
    request = builders.request(steps=steps, output=8, yields=(StepCount(1, 3), StepCount(2, 4)))
    result = breakdown(builders.recording(request, steps=[steps]))
    assert result.metrics["itl_ns"].p50 == 10 * MS
    assert result.metrics["itl_ns"].p99 == 10 * MS


def test_a_step_without_a_token_makes_the_next_gap_longer() -> None:
    steps = builders.steps(4, ms=10)
    request = builders.request(steps=steps, output=3, yields=(StepCount(2, 0),))
    result = breakdown(builders.recording(request, steps=[steps]))
    assert result.metrics["itl_ns"].p99 == 20 * MS


def test_a_gap_weighs_as_many_tokens_as_came_after_it() -> None:
    """Nine sequences in 10 ms steps and one in a 100 ms step: the median is 10 ms."""
    wide = builders.steps(2, ms=10, rows=9, stream=1)
    slow = builders.steps(2, ms=100, stream=2)
    result = breakdown(
        builders.recording(
            builders.request("wide", steps=wide, rows=9),
            builders.request("slow", steps=slow),
            steps=[wide, slow],
        )
    )
    assert result.metrics["itl_ns"].p50 == 10 * MS
    assert result.metrics["itl_ns"].p99 == 100 * MS


def test_throughput_leaves_idle_time_out() -> None:
    early = builders.steps(10, ms=10, stream=1)
    late = builders.steps(10, ms=10, stream=2, begin=EPOCH + 60_000 * MS)
    requests = [builders.request("early", steps=early), builders.request("late", steps=late)]
    result = breakdown(builders.recording(*requests, steps=[early, late]))
    assert result.throughput_tok_s == pytest.approx(100)


PAIRS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=60)


@given(PAIRS | st.integers(1, 3).flatmap(lambda w: PAIRS.map(lambda them: [(v, w) for v, _ in them])))
def test_weighted_percentiles_are_the_first_values_that_reach_them(pairs: list[tuple[int, int]]) -> None:
    values, weights = np.array(pairs, np.float64)[:, 0], np.array(pairs)[:, 1]
    each = sorted(value for value, weight in pairs for _ in range(weight))
    expected = []
    for share in (0.5, 0.95, 0.99):
        reached = next(at for at in range(len(each)) if at + 1 >= share * len(each))
        expected.append(float(each[reached]))
    assert weighted(values, weights) == Percentiles(*expected)
