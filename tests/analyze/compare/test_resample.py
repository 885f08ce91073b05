"""Intervals of ratios: they hold what they promise, and widen for few and for dependent requests."""

import math

import numpy as np
import pytest

from phasetrace.analyze.compare.metrics import standardised
from phasetrace.analyze.compare.resample import block_of_each, interval, stretch, summed
from phasetrace.analyze.token_gaps import Floats

MEAN = standardised(np.ones(1))


def blocks_of(values: Floats, at_once: float = 1.0) -> Floats:
    return summed(np.stack([values, np.ones(len(values))], 1), block_of_each(len(values), at_once))


def off(before: Floats, after: Floats, paired: bool = False) -> tuple[float, float]:
    found = interval(blocks_of(before), blocks_of(after), MEAN, paired)
    assert found is not None
    return found


def drawn(seed: int, count: int, alike: float = 0.0) -> Floats:
    """Lognormal values, of which neighbours correlate."""
    random = np.random.default_rng(seed)
    found = random.standard_normal(count)
    for n in range(1, count):
        found[n] = alike * found[n - 1] + math.sqrt(1 - alike**2) * found[n]
    return np.exp(0.5 * found)


@pytest.mark.parametrize("count", [6, 16, 40])
@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_an_interval_holds_the_truth_about_as_often_as_it_says(count: int, alike: float) -> None:
    missed = 0
    for seed in range(60):
        before, after = drawn(2 * seed, count, alike), drawn(2 * seed + 1, count, alike)
        low, high = off(before, after)
        missed += not low <= after.mean() / before.mean() <= high
    assert missed <= (6 if alike == 0 or count >= 40 else 15)  # of 60: few that are alike tell little


def test_more_requests_narrow_it_and_dependent_ones_widen_it() -> None:
    def width(count: int, alike: float = 0.0) -> float:
        low, high = off(drawn(1, count, alike), drawn(2, count, alike))
        return math.log(high / low)

    assert width(1000) < width(100) / 2 < width(10) / 4
    assert width(1000, 0.9) > 2 * width(1000)


def test_requests_that_ran_at_once_are_one_observation() -> None:
    assert block_of_each(64, 1.0).max() + 1 == 16
    assert block_of_each(64, 8.0).max() + 1 == 8
    assert block_of_each(64, 64.0).max() + 1 == 8  # as few as still give an interval


def test_pairs_take_out_what_both_runs_share() -> None:
    requests = drawn(1, 40) * 10
    noise = [np.exp(0.02 * np.random.default_rng(seed).standard_normal(40)) for seed in (2, 3)]
    low, high = off(requests * noise[0], requests * noise[1], paired=True)
    assert high / low < 1.1
    apart = off(requests * noise[0], requests * noise[1])
    assert apart[1] / apart[0] > 1.5


def test_too_few_blocks_have_no_interval() -> None:
    assert interval(blocks_of(drawn(1, 2)), blocks_of(drawn(2, 50)), MEAN, False) is None


def test_the_same_values_are_bounded_by_themselves() -> None:
    assert off(np.ones(10), np.ones(10)) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("blocks", "students_t"), [(3, 4.303), (4, 3.182), (8, 2.365), (30, 2.045), (200, 1.972)]
)
def test_few_blocks_stretch_it_as_students_t_does(blocks: int, students_t: float) -> None:
    expected = students_t / 1.95996 * math.sqrt(blocks / (blocks - 1))
    assert stretch(blocks) == pytest.approx(expected, rel=0.04)


def test_of_classes_each_counts_as_its_share() -> None:
    sums = np.array([[10.0, 300.0, 10.0, 30.0]])  # 1 a request of ten, 10 a request of thirty
    assert standardised(np.array([0.5, 0.5]))(sums)[0] == 5.5
    missing = np.array([[10.0, 0.0, 10.0, 0.0]])
    assert standardised(np.array([0.5, 0.5]))(missing)[0] == 1.0


@pytest.mark.parametrize(
    "pair", [(np.zeros(10), np.ones(10)), (np.ones(10), np.zeros(10)), (np.zeros(10),) * 2]
)
def test_nothing_has_no_interval(pair: tuple[Floats, Floats]) -> None:
    assert interval(blocks_of(pair[0]), blocks_of(pair[1]), MEAN, False) is None
