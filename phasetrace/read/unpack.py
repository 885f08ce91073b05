"""Unpacks gzip and zstd while reading, and refuses what would fill the memory of whoever reads it.

Three forms of zstd are met: a whole file, several frames one after the other, and what the Collector's file
exporter writes: each message a frame of its own behind its length, so that the file as a whole is no zstd.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from typing import IO, cast

import zstandard

from phasetrace.errors import TraceFormatError, UsageError

GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
LENGTH = 4  # bytes in front of each message, most significant first
MOST_RATIO = 300  # unpacked to packed: repetitive spans reach 100, a bomb thousands
ALWAYS_ALLOWED = 64 << 20  # bytes, whatever the ratio
LARGEST_WINDOW = 128 << 20  # of zstd: what its own command line allows
_CHUNK = 256 << 10


class Damaged(Exception):
    """A packed stream that does not go on."""


class Counted(io.RawIOBase):
    """Reads through, and counts."""

    def __init__(self, name: str, raw: IO[bytes]) -> None:
        self._name = name
        self._raw = raw
        self.count = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer from what is below; raises UsageError where the system refuses."""
        view = memoryview(cast(bytearray, buffer)).cast("B")
        try:
            count = cast(io.RawIOBase, self._raw).readinto(view) or 0
        except OSError as error:
            raise UsageError(f"{self._name} cannot be read: {error.strerror}") from None
        self.count += count
        return count


class Unpacked(io.RawIOBase):
    """What a packed stream unpacks to. Where it ends too early it just ends, and `cut` says so.

    Args:
        name: of the file, for what is said of it.
        packed: counts the bytes that go in.
        read: gives up to so many unpacked bytes, or none at the end; raises `Damaged`.
    """

    def __init__(self, name: str, packed: Counted, read: Callable[[int], bytes]) -> None:
        self.cut = False
        self._name = name
        self._packed = packed
        self._read = read
        self._given = 0

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer; raises UsageError where the very beginning is damaged."""
        view = memoryview(cast(bytearray, buffer)).cast("B")
        if self.cut:
            return 0
        try:
            data = self._read(min(len(view), _CHUNK))
        except Damaged as error:
            if not self._given:
                raise UsageError(
                    f"{self._name} is damaged: it begins like {error} and cannot be unpacked"
                ) from None
            self.cut = True
            return 0
        view[: len(data)] = data
        self._given += len(data)
        if self._given > ALWAYS_ALLOWED and self._given > MOST_RATIO * self._packed.count:
            raise TraceFormatError(
                f"{self._name} unpacks to more than {MOST_RATIO} times its size, which no trace does: refused"
            )
        return len(data)


def unpacked(name: str, raw: IO[bytes]) -> tuple[io.BufferedReader, Unpacked | None]:
    """A stream of plain bytes, and what unpacks it where it is packed."""
    counted = Counted(name, raw)
    buffered = cast(io.BufferedReader, io.BufferedReader(counted, _CHUNK))
    head = buffered.peek(LENGTH + len(ZSTD))
    if head.startswith(GZIP):
        stream = Unpacked(name, counted, _gunzip(buffered))
    elif head.startswith(ZSTD):
        stream = Unpacked(name, counted, _unzstd(buffered))
    elif head[LENGTH:].startswith(ZSTD):
        stream = Unpacked(name, counted, _Frames(buffered).read)
    else:
        return buffered, None
    return cast(io.BufferedReader, io.BufferedReader(stream, _CHUNK)), stream


def _gunzip(packed: io.BufferedReader) -> Callable[[int], bytes]:
    file = gzip.GzipFile(fileobj=packed)

    def read(size: int) -> bytes:
        try:
            return file.read1(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise Damaged("gzip") from None

    return read


def _unzstd(packed: IO[bytes]) -> Callable[[int], bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    reader = decoder.stream_reader(packed, read_across_frames=True, closefd=False)

    def read(size: int) -> bytes:
        try:
            return reader.read(size)
        except zstandard.ZstdError:
            raise Damaged("zstd") from None

    return read


class _Frames:
    """Messages that are packed one by one behind their lengths.

    JSON comes out as lines. Protobuf comes out as it would have been written unpacked: each message behind
    its own length.
    """

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed = packed
        self._decoder = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._left = b""

    def read(self, size: int) -> bytes:
        """Up to so many bytes."""
        if not self._left:
            self._left = self._next()
        given, self._left = self._left[:size], self._left[size:]
        return given

    def _next(self) -> bytes:
        length = self._packed.read(LENGTH)
        if not length:
            return b""
        frame = self._packed.read(min(int.from_bytes(length, "big"), ALWAYS_ALLOWED))
        if len(length) < LENGTH or len(frame) < int.from_bytes(length, "big"):
            raise Damaged("zstd")
        try:
            reader = self._decoder.stream_reader(frame, read_across_frames=True)
            message = reader.read(min(ALWAYS_ALLOWED, MOST_RATIO * len(frame) + _CHUNK))
            if reader.read(1):  # more than a message can hold
                raise Damaged("zstd")
        except zstandard.ZstdError:
            raise Damaged("zstd") from None
        if message.lstrip()[:1] in (b"{", b"["):
            return message.rstrip() + b"\n"
        return len(message).to_bytes(LENGTH, "big") + message
