"""No coefficient below zero, and none better than those that are found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze.non_negative import non_negative


def test_what_was_planted_is_found() -> None:
    columns = np.random.default_rng(1).random((50, 5))
    planted = np.array([3.0, 0.0, 100.0, 0.2, 0.5])
    assert non_negative(columns, columns @ planted) == pytest.approx(planted, rel=1e-3, abs=1e-3)


def test_of_two_columns_that_say_the_same_the_first_is_used() -> None:
    columns = np.stack([np.ones(10), np.full(10, 4.0)], axis=1)
    assert non_negative(columns, np.full(10, 8.0)) == pytest.approx([8.0, 0.0])


def test_an_empty_column_costs_nothing() -> None:
    columns = np.stack([np.zeros(10), np.arange(10.0)], axis=1)
    assert non_negative(columns, 3 * np.arange(10.0)) == pytest.approx([0.0, 3.0])


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_no_neighbour_is_better(seed: int, width: int) -> None:
    """The conditions of Karush, Kuhn and Tucker."""
    random = np.random.default_rng(seed)
    columns, values = random.standard_normal((20, width)), random.standard_normal(20)
    found = np.array(non_negative(columns, values))
    slope = columns.T @ (columns @ found - values)
    assert (found >= 0).all()
    assert slope[found > 0] == pytest.approx(0, abs=1e-6)
    assert (slope[found == 0] >= -1e-3).all()
