"""A table of columns comes back as it was, small, and what is no such table is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.mapping.packed_table import pack_table, rows_of_table, unpack_column, unpack_table

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-300, 300) | st.just(7)
TABLES = st.integers(1, 5).flatmap(
    lambda rows: st.lists(st.lists(NUMBERS, min_size=rows, max_size=rows), min_size=1, max_size=4)
)
SMALL = pack_table([np.array([1, 2, 3]), np.array([5, 5, 5])])


@given(TABLES)
def test_any_table_comes_back(table: list[list[int]]) -> None:
    data = pack_table([np.array(column, np.int64) for column in table])
    assert [column.tolist() for column in unpack_table(data, len(table))] == table
    assert [unpack_column(data, len(table), place).tolist() for place in range(len(table))] == table
    assert rows_of_table(data, len(table)) == len(table[0])


def test_what_does_not_vary_takes_nothing() -> None:
    data = pack_table([np.full(100_000, 1 << 40), np.zeros(100_000, np.int64)])
    assert len(data) < 60
    assert [column.strides for column in unpack_table(data, 2)] == [(0,), (0,)]


def test_noise_takes_its_own_bits() -> None:
    noise = np.random.default_rng(0).integers(9_000_000, 9_000_000 + (1 << 17), 10_000)
    assert len(pack_table([noise])) < 2.3 * len(noise)


@pytest.mark.parametrize("data", [b"", b"nonsense", SMALL[:-3], SMALL[:-1] + b"\0"])
@pytest.mark.parametrize("read", [unpack_table, rows_of_table])
def test_damage_is_refused(data: bytes, read: object) -> None:
    with pytest.raises(ValueError, match="damaged"):
        read(data, 2)  # type: ignore[operator]


@pytest.mark.parametrize("count", [1, 3, 1000])
def test_another_number_of_columns_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match="damaged"):
        unpack_table(SMALL, count)
