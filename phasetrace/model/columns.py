"""Columns of integers that take no more memory than what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.signedinteger[Any]]  # of 64 bits; of 32 where a column and its sums over parts fit
NARROW = np.iinfo(np.int32).max


def constant(value: int, size: int) -> Ints:
    """`size` times the same number, kept once; nobody can write to it."""
    kind = np.int32 if -NARROW <= value <= NARROW else np.int64
    column: Ints = np.ndarray((size,), kind, kind(value).tobytes(), 0, (0,))
    return column


def joined(columns: Sequence[Ints]) -> Ints:
    """One column of several, without a copy where they lie one behind the other or are one number."""
    columns = [column for column in columns if len(column)]
    if not columns:
        return np.zeros(0, np.int64)
    first, size = columns[0], sum(map(len, columns))
    if len(columns) == 1:
        return first
    if all(column.strides == (0,) for column in columns):
        value = int(first[0])
        if all(int(column[0]) == value for column in columns):
            return constant(value, size)
    elif _one_behind_the_other(columns):
        return first.base[(_address(first) - _address(first.base)) // first.itemsize :][:size]  # type: ignore
    return np.concatenate(columns)


def side_by_side(runs: Sequence[Ints]) -> list[Ints]:
    """The same columns in one piece of memory, so that joining them costs nothing."""
    whole = np.concatenate(runs) if runs else np.zeros(0, np.int64)
    return np.split(whole, np.cumsum([len(run) for run in runs])[:-1]) if runs else []


def _one_behind_the_other(columns: Sequence[Ints]) -> bool:
    base = columns[0].base
    if not isinstance(base, np.ndarray) or base.ndim != 1 or base.strides != (base.itemsize,):
        return False
    at = _address(columns[0])
    for column in columns:
        if column.base is not base or column.dtype != base.dtype or column.strides != base.strides:
            return False
        if _address(column) != at:
            return False
        at += column.nbytes
    return True


def _address(column: Ints) -> int:
    place: int = column.__array_interface__["data"][0]
    return place
