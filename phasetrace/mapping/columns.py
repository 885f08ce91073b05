"""Columns of integers as compressed bytes, both directions side by side.

Differences from one row to the next, their bytes regrouped by significance, then zlib: the high bytes are
nearly all zero and cost next to nothing.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from phasetrace.model import NARROW, Ints, constant

_LEVEL = 6
_WIDTH = 8  # bytes of an integer
_SHORT = 64  # bytes, packed
_LARGEST = 64 << 20  # of an unpacked column: a file from elsewhere must not fill memory


def pack(values: Ints | Sequence[int]) -> bytes:
    """A column as bytes."""
    column = np.asarray(values, np.int64)
    steps = np.diff(column, prepend=np.int64(0))
    zigzag = (steps << 1) ^ (steps >> 63)  # small numbers of either sign get zero high bytes
    planes = zigzag.astype("<i8").view(np.uint8).reshape(-1, _WIDTH).T
    return zlib.compress(planes.tobytes(), _LEVEL)


def unpack(data: bytes) -> Ints:
    """The column that `pack` made these bytes of; ValueError where it did not."""
    column: Ints = unpack_together([data])[0]
    return column


def unpack_together(packed: Sequence[bytes]) -> Ints:
    """(len(packed), n): columns of one length, many times as fast as one by one where n is small.

    Raises:
        ValueError: `pack` made no such columns.
    """
    raw = [_unzipped_again(data) if len(data) <= _SHORT else _unzipped(data) for data in packed]
    if any(len(one) != len(raw[0]) for one in raw):
        raise ValueError("packed columns differ in length")
    planes = np.frombuffer(b"".join(raw), np.uint8).reshape(len(raw), _WIDTH, -1)
    zigzag = np.ascontiguousarray(planes.transpose(0, 2, 1)).view("<u8").reshape(len(raw), -1)
    steps = (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)
    columns: Ints = np.cumsum(steps, axis=1, dtype=np.int64)
    return columns


def narrowed(columns: Ints) -> list[Ints]:
    """Each row of a table as a column of its own, in as little memory as it takes.

    Those that vary get 32 bits where they have room for the sum over all of them, so that sums fit too.
    """
    if not columns.size:
        return list(columns)
    low, high = columns.min(axis=1), columns.max(axis=1)
    varies = low < high
    room = low.min() >= -1 and high.max() <= NARROW and columns.sum(axis=0).max() <= NARROW
    small = iter(columns[varies].astype(np.int32 if room else np.int64))
    size = columns.shape[1]
    return [
        next(small) if v else constant(n, size) for v, n in zip(varies.tolist(), low.tolist(), strict=True)
    ]


@lru_cache(64)
def _unzipped_again(data: bytes) -> bytes:
    """Of a column that does not vary: the same few bytes in one span after the other."""
    return _unzipped(data)


def _unzipped(data: bytes) -> bytes:
    decoder = zlib.decompressobj()
    try:
        raw = decoder.decompress(data, _LARGEST)
    except zlib.error as error:
        raise ValueError(f"a packed column is damaged: {error}") from None
    if not decoder.eof or len(raw) % _WIDTH:
        raise ValueError("a packed column is damaged: it has no proper end")
    return raw
