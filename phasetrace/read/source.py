"""Opens what the user names, and gives its bytes, by lines or whole, whatever it is packed in."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, cast

from phasetrace.errors import PhasetraceError, TraceFormatError, UsageError
from phasetrace.read.encoding import in_utf8
from phasetrace.read.unpack import unpacked

Progress = Callable[[int, int | None], None]  # bytes read, bytes in all where known
HEAD = 64 << 10  # enough to tell any format
LONGEST = 512 << 20  # of a line, a message or a document: parsed, it takes many times as much memory
BEGIN_OF_LINE = 4096  # bytes: in them a line tells whether it is of use
_BUFFER = 1 << 20  # longer than most lines, so that each is copied out of it at once
_UNREAD = 64 << 10  # of a line that is of no use: larger pieces are new memory each time, which costs more
_REPORT_EVERY = 1 << 20


class Source:
    """A file or the standard input, unpacked where needed; or `raw`, of which `name` is what it is called.

    Raises:
        UsageError: with what to do about it, which is `instead` where there is no such file.
    """

    def __init__(
        self,
        name: str,
        progress: Progress | None = None,
        raw: IO[bytes] | None = None,
        instead: str = "`phasetrace run -- COMMAND` records one as trace.json",
    ) -> None:
        self.name = "standard input" if name == "-" else name
        self._progress = progress
        self._reported = 0
        self._raw = raw or (sys.stdin.buffer if name == "-" else _open(name, instead))
        self.size = _size(self._raw)
        try:
            plain, self._unpacked = unpacked(self.name, self._raw)
            plain = in_utf8(plain)
            self._begin = _filled(plain, HEAD).removeprefix(codecs.BOM_UTF8)
        except PhasetraceError:
            self.close()
            raise
        rejoined = _Rejoined(self._begin, plain)
        self._file = io.BufferedReader(cast(io.RawIOBase, rejoined), _BUFFER)

    @property
    def cut(self) -> bool:
        """Whether a packed file ended too early."""
        return self._unpacked is not None and self._unpacked.cut

    def head(self) -> bytes:
        """The first bytes, which stay to be read; without a byte order mark."""
        return self._begin

    def lines(self, passed_over: tuple[bytes, ...] = ()) -> Iterator[bytes | bytearray]:
        """Each line with its end; the last one may lack it.

        Of one that has any of `passed_over` near its begin, no more than its begin and its end.
        """
        while line := self._file.readline(BEGIN_OF_LINE if passed_over else _BUFFER):
            self._report()
            if line.endswith(b"\n"):
                yield line
            elif any(mark in line for mark in passed_over):
                yield line + self._end_of_line()
            else:
                yield self._whole_line(line)

    def _end_of_line(self) -> bytes:
        """Its last byte."""
        piece = b""
        while not piece.endswith(b"\n") and (more := self._file.readline(_UNREAD)):
            piece = more
        return piece[-1:]

    def _whole_line(self, begin: bytes) -> bytes | bytearray:
        """A long line, grown where it is: pieces to be joined would be in memory twice."""
        once = begin + self._file.readline(_BUFFER - len(begin))
        if once.endswith(b"\n"):
            return once
        line = bytearray(once)
        while not line.endswith(b"\n") and (piece := self._file.readline(_BUFFER)):
            if len(line) + len(piece) > LONGEST:
                raise self.too_long("line")
            line += piece
            self._report()
        return line

    def read(self, size: int) -> bytes:
        """So many bytes; fewer at the end."""
        if size > LONGEST:
            raise self.too_long("message")
        self._report()
        return self._file.read(size) if size <= _BUFFER else bytes(self._pieces(size))

    def whole(self) -> bytearray:
        """All of it."""
        data = self._pieces(LONGEST + 1)
        if len(data) > LONGEST:
            raise self.too_long("document")
        return data

    def _pieces(self, size: int) -> bytearray:
        """So many bytes; fewer at the end. Memory is asked for as they come, whatever a file claims."""
        data = bytearray(self._file.read(_BUFFER))
        while len(data) < size and (piece := self._file.read(min(_BUFFER, size - len(data)))):
            data += piece
            self._report()
        return data

    def close(self) -> None:
        """Close the file; the standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def too_long(self, what: str) -> TraceFormatError:
        """The refusal of what would fill memory."""
        return TraceFormatError(
            f"{self.name} has a {what} of more than {LONGEST >> 20} MiB, more than phasetrace reads at once;"
            " export fewer traces at a time, or as JSON lines"
        )

    def _report(self) -> None:
        if self._progress is not None and (at := self._at()) - self._reported >= _REPORT_EVERY:
            self._progress(at, self.size)
            self._reported = at

    def _at(self) -> int:
        try:
            return self._raw.tell()
        except OSError:  # a pipe has no position
            return 0


class _Rejoined(io.RawIOBase):
    """What was read already, then the rest."""

    def __init__(self, begin: bytes, rest: io.BufferedReader) -> None:
        self._begin = begin
        self._rest = rest

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer."""
        view = memoryview(cast(bytearray, buffer)).cast("B")
        if self._begin:
            data, self._begin = self._begin[: len(view)], self._begin[len(view) :]
            view[: len(data)] = data
            return len(data)
        return self._rest.readinto1(view)


def _filled(stream: io.BufferedReader, size: int) -> bytes:
    """So many bytes, also of a pipe that gives fewer at a time."""
    return stream.read(size) or b""


def _open(name: str, instead: str) -> IO[bytes]:
    try:
        return open(name, "rb", buffering=0)
    except FileNotFoundError:
        raise UsageError(f"{name} does not exist; {instead}") from None
    except IsADirectoryError:
        raise UsageError(f"{name} is a folder; name a trace file in it") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', error)}") from None


def _size(file: IO[bytes]) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None
