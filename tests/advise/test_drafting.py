"""What a verified position costs is learned from steps that follow each other, on a machine that is busy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.advise.drafting import position_share

ROWS = np.full(300, 8)


def steps(share: float, seed: int, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and drafted tokens of 300 steps; the machine is up to three times slower for a while."""
    random = np.random.default_rng(seed)
    drafted = 12 * random.integers(0, 9, 300)
    busy = 2 + np.sin(np.arange(300) / 20)
    length = 15e6 * busy * (1 + share * drafted) * random.normal(1, noise, 300)
    length[random.integers(0, 300, 15)] *= 20  # stalls
    return length.astype(np.int64), drafted


@given(share=st.floats(0.01, 0.1), seed=st.integers(0, 1000))
def test_the_cost_is_found_whatever_else_the_machine_does(share: float, seed: int) -> None:
    length, drafted = steps(share, seed)
    assert position_share(length, ROWS, drafted) == pytest.approx(share, rel=0.35)


def test_a_position_that_costs_nothing_costs_nothing() -> None:
    found = [position_share(*_with_rows(steps(0.0, seed))) for seed in range(20)]
    assert np.median(np.array(found, float)) == 0
    assert max(found) < 0.002  # type: ignore[type-var]


def test_a_quiet_half_is_not_taken_for_cheap_steps() -> None:
    """Plain steps while the machine is busy take as long as drafts do in the quiet: medians show no loss."""
    drafted = np.where(np.arange(300) % 15 == 0, 0, 48)
    drafted[150:] = np.where(np.arange(150) % 15 == 0, 48, 0)
    length = (np.where(np.arange(300) < 150, 10e6, 29.2e6) * (1 + 0.04 * drafted)).astype(np.int64)
    assert np.median(length[drafted > 0]) <= np.median(length[drafted == 0])
    assert position_share(length, ROWS, drafted) == pytest.approx(0.04, rel=0.05)


def test_steps_that_do_not_vary_tell_nothing() -> None:
    assert position_share(np.full(300, 10), ROWS, np.full(300, 12)) is None


def _with_rows(made: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return made[0], ROWS, made[1]
