"""Columns of one length in one piece of bytes, both directions side by side.

Of each column its smallest number, and what the others have above it in as few bytes as the largest needs,
regrouped by significance; then zstd. A column that does not vary takes nine bytes, whatever its length.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import zstandard

from phasetrace.model import Ints, constant

_WIDTH = 8  # bytes of an integer
_NARROW_WIDTH = 4
_SMALL = 1 << 26  # with three bytes on top: sums over a few columns have 32 bits, too
_LARGEST = 64 << 20  # of an unpacked table: a file from elsewhere must not fill memory


class _Zstd(threading.local):
    """Made once a thread: making them takes longer than what they do to a table."""

    def __init__(self) -> None:
        self.packer = zstandard.ZstdCompressor(write_checksum=True)
        self.unpacker = zstandard.ZstdDecompressor()


_ZSTD = _Zstd()


def pack_table(columns: Sequence[Ints]) -> bytes:
    """At least one column, of at least one row, as bytes."""
    table = np.array(columns, np.int64)
    lows = table.min(axis=1)
    above = table.view("<u8") - lows.view("<u8")[:, None]
    widths = [-(-int(most).bit_length() // 8) for most in above.max(axis=1)]
    planes = above.view(np.uint8).reshape(*above.shape, _WIDTH)
    held = (planes[at, :, :width].T.tobytes() for at, width in enumerate(widths))
    head = struct.pack(f"<Q{len(lows)}q", table.shape[1], *lows.tolist())
    return _ZSTD.packer.compress(b"".join((head, bytes(widths), *held)))


def unpack_table(data: bytes, count: int) -> list[Ints]:
    """The columns that `pack_table` made these bytes of, each in as little memory as it takes.

    Raises:
        ValueError: it did not, or not of so many columns.
    """
    raw, rows, lows, widths = _opened(data, count)
    return list(_columns(raw, rows, lows, widths, len(raw) - rows * sum(widths)))


def unpack_column(data: bytes, count: int, place: int) -> Ints:
    """One of the columns; ValueError where `unpack_table` would raise one."""
    raw, rows, lows, widths = _opened(data, count)
    one = slice(place, place + 1)
    return next(_columns(raw, rows, lows[one], widths[one], len(raw) - rows * sum(widths[place:])))


def rows_of_table(data: bytes, count: int) -> int:
    """How many rows there are; ValueError where `unpack_table` would raise one."""
    return _opened(data, count)[1]


def _columns(raw: bytes, rows: int, lows: Sequence[int], widths: bytes, at: int) -> Iterator[Ints]:
    """Those of these smallest numbers and widths, whose bytes begin at `at`."""
    for (width, narrow), alike in groupby(zip(lows, widths, strict=True), _kind):
        base = [low for low, _ in alike]
        if not width:
            yield from (constant(low, rows) for low in base)
            continue
        table: Ints = np.zeros((len(base), rows), np.int32 if narrow else np.int64)
        planes = np.frombuffer(raw, np.uint8, table.size * width, at).reshape(len(base), width, rows)
        held = table.view(np.uint8).reshape(*table.shape, -1)
        for significance in range(width):  # one by one is nearly three times as fast as all together
            held[..., significance] = planes[:, significance]
        table += np.array(base, table.dtype)[:, None]
        yield from table
        at += planes.size


def _kind(column: tuple[int, int]) -> tuple[int, bool]:
    """The width of a column, and whether its numbers have 32 bits."""
    low, width = column
    return width, width < _NARROW_WIDTH and abs(low) < _SMALL


def _opened(data: bytes, count: int) -> tuple[bytes, int, Sequence[int], bytes]:
    """All bytes, rows, smallest numbers, widths."""
    raw = _unzipped(data)
    try:
        rows, *lows = struct.unpack_from(f"<Q{count}q", raw)
    except struct.error as error:
        raise ValueError(f"a packed table is damaged: {error}") from None
    head = _WIDTH * (1 + count)
    widths = raw[head : head + count]
    fits = 0 < rows <= _LARGEST // (_WIDTH * count) and len(widths) == count and max(widths) <= _WIDTH
    if not fits or len(raw) != head + count + rows * sum(widths):
        raise ValueError("a packed table is damaged: it has another size than it says")
    return raw, rows, lows, widths


def _unzipped(data: bytes) -> bytes:
    try:
        if not 0 <= zstandard.frame_content_size(data) <= _LARGEST:
            raise ValueError("a packed table is damaged: it does not say its size")
        return _ZSTD.unpacker.decompress(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"a packed table is damaged: {error}") from None
