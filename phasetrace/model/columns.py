"""Columns of integers that take no more memory than what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.signedinteger[Any]]  # of 64 bits; of 32 where a column and its sums over parts fit
NARROW = np.iinfo(np.int32).max
_SHELF = 1 << 20  # numbers that are put into one piece of memory


@lru_cache(1024)
def constant(value: int, size: int) -> Ints:
    """`size` times the same number, kept once; nobody can write to it."""
    kind = np.int32 if -NARROW <= value <= NARROW else np.int64
    column: Ints = np.ndarray((size,), kind, kind(value).tobytes(), 0, (0,))
    return column


def joined(columns: Sequence[Ints]) -> Ints:
    """One column of several, without a copy where they are one number."""
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
    return np.concatenate(columns)


def narrow(column: Ints) -> Ints:
    """The same numbers in 32 bits, where they have room."""
    fits = column.min(initial=0) >= -NARROW and column.max(initial=0) <= NARROW
    return column.astype(np.int32) if fits else column


def chosen(column: Ints, rows: npt.NDArray[np.bool_]) -> Ints:
    """The rows of a column that are marked."""
    if column.strides == (0,) and len(column):
        return constant(int(column[0]), int(np.count_nonzero(rows)))
    return column[rows]


class Shelf:
    """Puts narrow columns side by side: thousands of small ones would leave holes in memory."""

    def __init__(self) -> None:
        self._room: Ints = np.zeros(0, np.int32)

    def put(self, column: Ints) -> Ints:
        """The same column; one that is wide, or one number, stays where it is."""
        if column.dtype != np.int32 or column.strides == (0,):
            return column
        if len(column) > len(self._room):
            self._room = np.empty(max(_SHELF, len(column)), np.int32)
        place, self._room = self._room[: len(column)], self._room[len(column) :]
        place[:] = column
        return place
