"""Opens what the user names, and gives its bytes line by line whatever they are packed in."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import IO, cast

from phasetrace.errors import TraceFormatError, UsageError

Progress = Callable[[int, int | None], None]  # bytes read, bytes in all where known
HEAD = 64 << 10  # enough to tell any format
_BUFFER = 1 << 20  # longer than most lines, so that each is copied out of it at once
LONGEST = 1 << 30  # of a line: a small compressed file can hold one that fills all memory
_GZIP = b"\x1f\x8b"
_REPORT_EVERY = 1 << 20


class Source:
    """A file or the standard input, gunzipped where needed.

    Raises:
        UsageError: with what to do about it.
    """

    def __init__(self, name: str, progress: Progress | None = None) -> None:
        self.name = "standard input" if name == "-" else name
        self.cut = False  # a compressed file ended too early
        self._progress = progress
        self._raw = sys.stdin.buffer if name == "-" else _open(name)
        self._size = _size(self._raw)
        buffered = io.BufferedReader(cast(io.RawIOBase, self._raw), HEAD)
        try:
            packed = buffered.peek(len(_GZIP)).startswith(_GZIP)
        except OSError as error:
            self._raw.close()
            raise UsageError(f"{self.name} cannot be read: {error.strerror}") from None
        unpacked = cast(IO[bytes], gzip.GzipFile(fileobj=buffered)) if packed else buffered
        self._file = io.BufferedReader(cast(io.RawIOBase, unpacked), _BUFFER)

    def head(self) -> bytes:
        """The first bytes, which stay to be read."""
        try:
            return self._file.peek(HEAD)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise UsageError(f"{self.name} is damaged: it begins like gzip and cannot be unpacked") from None
        except OSError as error:
            raise UsageError(f"{self.name} cannot be read: {error.strerror}") from None

    def lines(self) -> Iterator[bytes]:
        """Each line with its end; the last one may lack it."""
        reported = 0
        while True:
            try:
                line = self._file.readline(LONGEST)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                self.cut = True
                return
            except OSError as error:
                raise UsageError(f"{self.name} cannot be read to its end: {error.strerror}") from None
            if not line:
                return
            if len(line) == LONGEST:
                raise TraceFormatError(f"{self.name} has a line of more than {LONGEST:,} bytes")
            if self._progress is not None and (at := self._at()) - reported >= _REPORT_EVERY:
                self._progress(at, self._size)
                reported = at
            yield line

    def close(self) -> None:
        """Close the file; the standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._file.close()
            self._raw.close()
        else:
            self._file.detach()

    def _at(self) -> int:
        try:
            return self._raw.tell()
        except OSError:  # a pipe has no position
            return 0


def _open(name: str) -> IO[bytes]:
    try:
        return open(name, "rb", buffering=0)
    except FileNotFoundError:
        raise UsageError(
            f"{name} does not exist; `phasetrace run -- COMMAND` records one as trace.json"
        ) from None
    except IsADirectoryError:
        raise UsageError(f"{name} is a folder; name a trace file in it") from None
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None


def _size(file: IO[bytes]) -> int | None:
    try:
        return os.fstat(file.fileno()).st_size or None
    except OSError:
        return None
