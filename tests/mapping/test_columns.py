"""Packed columns come back exactly, whatever is in them, and damage is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.mapping.columns import pack, unpack


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
