"""Columns that take little memory hold what the plain ones hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.model import Ints, Shelf, chosen, constant, joined, narrow

RUNS = st.lists(st.lists(st.integers(-(1 << 62), 1 << 62), max_size=4), max_size=5)


def columns(runs: list[list[int]]) -> list[Ints]:
    return [np.array(run, np.int64) for run in runs]


@given(RUNS)
def test_joined_is_one_behind_the_other(runs: list[list[int]]) -> None:
    assert joined(columns(runs)).tolist() == sum(runs, [])


@given(st.lists(st.integers(-(1 << 62), 1 << 62), max_size=4))
def test_in_little_memory_the_numbers_are_the_same(numbers: list[int]) -> None:
    column = np.array(numbers, np.int64)
    assert narrow(column).tolist() == numbers
    assert narrow(np.array([1, 2])).dtype == np.int32


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=5))
def test_marked_rows_are_chosen(rows: list[tuple[int, bool]]) -> None:
    column, marked = np.array([n for n, _ in rows]), np.array([m for _, m in rows])
    assert chosen(column, marked).tolist() == [n for n, m in rows if m]
    assert chosen(constant(7, len(rows)), marked).tolist() == [7 for _, m in rows if m]


@given(st.lists(st.tuples(st.sampled_from([0, -1, 7, 1 << 40]), st.integers(0, 3)), max_size=5))
def test_numbers_that_do_not_vary(pieces: list[tuple[int, int]]) -> None:
    found = joined([constant(value, size) for value, size in pieces])
    assert found.tolist() == [value for value, size in pieces for _ in range(size)]


def test_one_number_takes_no_memory() -> None:
    assert joined([constant(3, 10), constant(3, 20)]).strides == (0,)
    assert constant(1 << 40, 2).tolist() == [1 << 40] * 2


@given(st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=5))
def test_what_is_put_on_a_shelf_stays_what_it_is(runs: list[list[int]]) -> None:
    shelf = Shelf()
    kept = [shelf.put(np.array(run, np.int32)) for run in runs]
    assert [column.tolist() for column in kept] == runs
    wide = np.array([1 << 40])
    assert shelf.put(wide) is wide
