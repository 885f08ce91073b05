"""Packed columns come back exactly, whatever is in them, and damage is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.mapping.columns import narrowed, pack, unpack, unpack_together


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1)))
def test_comes_back(values: list[int]) -> None:
    assert unpack(pack(values)).tolist() == values


def test_ordinary_columns_become_small() -> None:
    rng = np.random.default_rng(1)
    durations = rng.normal(10e6, 50e3, 1024).astype(np.int64)
    assert len(pack(np.ones(1024, np.int64))) < 40
    assert len(pack(durations)) < 3 * 1024


@pytest.mark.parametrize("data", [b"", b"nonsense", pack([1, 2, 3])[:-3]])
def test_damage_is_noticed(data: bytes) -> None:
    with pytest.raises(ValueError, match="damaged"):
        unpack(data)


TABLES = st.integers(1, 6).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(-5, 9) | st.integers(-(1 << 62), 1 << 62), min_size=size, max_size=size)
        | st.integers(-(1 << 62), 1 << 62).map(lambda value: [value] * size),
        min_size=1,
        max_size=4,
    )
)


@given(TABLES)
def test_columns_of_one_length_come_back_together_and_narrowed(columns: list[list[int]]) -> None:
    table = unpack_together([pack(column) for column in columns])
    assert table.tolist() == columns
    assert [column.tolist() for column in narrowed(table)] == columns


@given(st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3), min_size=1, max_size=4))
def test_narrowed_columns_have_room_for_their_sum(columns: list[list[int]]) -> None:
    found = narrowed(np.array(columns))
    added = np.zeros(3, np.result_type(np.int32, *{column.dtype for column in found}))
    for column in found:
        added += column
    assert added.tolist() == np.array(columns).sum(axis=0).tolist()


def test_columns_of_two_lengths_are_no_table() -> None:
    with pytest.raises(ValueError, match="length"):
        unpack_together([pack([1, 2]), pack([1])])
