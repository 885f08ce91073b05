"""Steps in columns are the steps that were given, whatever pieces they came in."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.model import Part, StepColumns, Steps, columns_of

PIECES = st.lists(
    st.tuples(
        st.integers(1, 2),  # stream
        st.lists(st.tuples(st.integers(-3, 3), st.integers(-2, 30)), min_size=1, max_size=5),  # wait, length
    ),
    max_size=6,
)


def given_steps(pieces: list[tuple[int, list[tuple[int, int]]]]) -> list[Steps]:
    found, next_index = [], {1: 0, 2: 0}
    for stream, rows in pieces:
        wait, length = np.array(rows).T
        ends = 100 * len(found) + np.cumsum(wait + length)
        count = len(rows)
        parts = {Part.FORWARD: length // 2, Part.OTHER: length - length // 2}
        running = np.full(count, stream)
        found.append(Steps("p", stream, next_index[stream], ends - length, ends, parts, running=running))
        next_index[stream] += count
    return found


def rows_of(steps: object) -> list[tuple[int, ...]]:
    return sorted(
        (s.stream, s.first_index + at, int(s.begin_ns[at]), int(s.end_ns[at]), *parts, int(s.running[at]))
        for s in steps  # type: ignore[attr-defined]
        for at, parts in enumerate(zip(*(c.tolist() for c in s.parts.values()), strict=True))
    )


@given(PIECES)
def test_every_row_comes_back(pieces: list[tuple[int, list[tuple[int, int]]]]) -> None:
    steps = given_steps(pieces)
    columns = columns_of(steps[::-1])
    assert rows_of(columns) == rows_of(steps)
    assert columns_of(columns) is columns
    whole = [time for s in columns for time in s.begin_ns.tolist()]
    assert [columns.began_ns(row) for row in range(columns.rows)] == whole
    for part in (Part.FORWARD, Part.OTHER, Part.GC):
        split = (s.parts.get(part, np.zeros(len(s), np.int64)) for s in columns)
        found = columns.part(part, 0, len(columns.pieces))
        assert found.tolist() == [ns for column in split for ns in column.tolist()]
    assert len(columns) == len({s.stream for s in steps})  # what goes on is one item
    assert [len(s) for s in columns[:]] == [len(s) for s in columns]


@given(PIECES, st.integers(0, 30), st.integers(0, 30))
def test_times_of_any_rows_are_looked_up(
    pieces: list[tuple[int, list[tuple[int, int]]]], a: int, b: int
) -> None:
    columns = columns_of(given_steps(pieces))
    begin, end = sorted((min(a, columns.rows), min(b, columns.rows)))
    begins = [int(ns) for s in columns for ns in s.begin_ns]
    assert columns.begin_ns(begin, end).tolist() == begins[begin:end]
    assert (columns.begin_ns(begin, end) + columns.length_ns(begin, end) == columns.end_ns[begin:end]).all()


@given(PIECES, st.integers(-1, 30))
def test_a_step_is_found_by_its_index(pieces: list[tuple[int, list[tuple[int, int]]]], index: int) -> None:
    columns = columns_of(given_steps(pieces))
    start = 0
    for item in columns:
        end = start + len(item)
        row = columns.row_of(start, end, index)
        assert row == start + min(max(index - item.first_index, 0), len(item))
        assert row == end or columns.index_of(row) == max(index, item.first_index)
        start = end


def test_items_are_chosen_by_what_is_known_of_them() -> None:
    ends = np.array([1, 2])
    known = Steps("p", 1, 0, ends - 1, ends, {}, waiting=np.array([3, 4]))
    other = Steps("p", 2, 0, ends - 1, ends, {})
    assert [s.stream for s in columns_of([known, other]).knowing("waiting")] == [1]
    assert not len(StepColumns([]))
