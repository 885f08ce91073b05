"""Columns that take little memory hold what the plain ones hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.model import Ints, constant, joined, side_by_side

RUNS = st.lists(st.lists(st.integers(-(1 << 62), 1 << 62), max_size=4), max_size=5)


def columns(runs: list[list[int]]) -> list[Ints]:
    return [np.array(run, np.int64) for run in runs]


@given(RUNS)
def test_joined_is_one_behind_the_other(runs: list[list[int]]) -> None:
    assert joined(columns(runs)).tolist() == sum(runs, [])


@given(RUNS, st.integers(0, 4), st.integers(0, 5))
def test_what_lies_side_by_side_is_joined_without_a_copy(
    runs: list[list[int]], first: int, last: int
) -> None:
    pieces = side_by_side(columns(runs))
    assert [piece.tolist() for piece in pieces] == runs
    some = pieces[first:last]
    whole = joined(some)
    assert whole.tolist() == sum(runs[first:last], [])
    assert all(np.shares_memory(whole, piece) for piece in some if len(piece))


@given(RUNS)
def test_order_counts(runs: list[list[int]]) -> None:
    pieces = side_by_side(columns(runs))[::-1]
    assert joined(pieces).tolist() == sum(runs[::-1], [])


@given(st.lists(st.tuples(st.sampled_from([0, -1, 7, 1 << 40]), st.integers(0, 3)), max_size=5))
def test_numbers_that_do_not_vary(pieces: list[tuple[int, int]]) -> None:
    found = joined([constant(value, size) for value, size in pieces])
    assert found.tolist() == [value for value, size in pieces for _ in range(size)]


def test_one_number_takes_no_memory() -> None:
    assert joined([constant(3, 10), constant(3, 20)]).strides == (0,)
    assert constant(1 << 40, 2).tolist() == [1 << 40] * 2
