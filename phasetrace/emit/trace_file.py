"""The trace file: JSON Lines that can be appended to and survive the death of who writes them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from phasetrace.emit.otlp_json import to_lines
from phasetrace.mapping import Detail, SpanMaker
from phasetrace.model import Recording


class TraceFile:
    """Writes the partial recordings of a run; what one `write` got is in the kernel's hands when it returns.

    Args:
        path: where to write. A file that is there already is kept under the next free number: trace.1.json.
        detail: how much to show of each request; all of it is kept in any case.
        max_size: about how long it may become. At half of it, what is written is set aside as
            trace.earlier.json, in the place of what was set aside before, and a file is begun that can be
            read by itself: so the newest half of it at least is there. None for any length.
        begun: told each time that a file has been begun at `path`, while it is empty.

    Raises:
        OSError: by any method, when the file cannot be written.
    """

    def __init__(
        self,
        path: Path | str,
        detail: Detail | str = Detail.AUTO,
        max_size: int | None = None,
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = Path(path)
        self.dropped = 0  # bytes of the run that are in no file any more
        self._most = max_size
        self._begun = begun
        self._set_aside = 0  # bytes
        keep_existing(self.path)
        self._file = open(self.path, "wb")
        self._spans = SpanMaker(Detail(detail))
        begun()

    def write(self, recording: Recording) -> None:
        """Add a part of the recording."""
        if self._most is not None:
            # A piece that begins with requests tells something; for want of them it is begun all the same.
            if self._file.tell() > (self._most // 2 if recording.requests else self._most):
                self._begin_anew()
        for line in to_lines(self._spans.spans(recording)):
            self._file.write(line)
        self._file.flush()

    @property
    def pieces(self) -> list[Path]:
        """The files that the run is in, oldest first."""
        return pieces(self.path)

    @property
    def is_deleted(self) -> bool:
        """Whether somebody has deleted it meanwhile; what was written is there until it is closed."""
        return os.fstat(self._file.fileno()).st_nlink == 0

    def continue_in(self, path: Path) -> None:
        """Go on in another file, which gets all that was written so far."""
        shutil.copyfile(f"/proc/self/fd/{self._file.fileno()}", path)
        self._file.close()
        self.path, self._file = path, open(path, "ab")
        self._begun = lambda: None

    def close(self) -> None:
        """No more parts will come."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin_anew(self) -> None:
        self.dropped += self._set_aside
        self._set_aside = self._file.tell()
        self._file.close()
        with suppress(FileNotFoundError):  # who moved it away has it
            os.replace(self.path, earlier(self.path))
        self._file = open(self.path, "wb")
        self._spans.begin_anew()
        self._begun()


def earlier(path: Path) -> Path:
    """Where the piece of a trace is that was written before the one at `path`: trace.earlier.json."""
    return path.with_suffix(f".earlier{path.suffix}")


def pieces(path: Path) -> list[Path]:
    """The files of a trace that are there, oldest first."""
    return [piece for piece in (earlier(path), path) if piece.exists()]


def keep_existing(path: Path) -> None:
    """Move files that are in the way to the next free number: trace.1.json, then trace.2.json."""
    existing = [piece for piece in pieces(path) if piece.is_file() and piece.stat().st_size]  # no device
    kept = _numbered(path, _free_number(path))
    for piece in existing:
        os.rename(piece, kept if piece == path else earlier(kept))


def kept_last(path: Path) -> Path | None:
    """The file that was moved out of the way of `path` last; None where none was."""
    number = _free_number(path) - 1
    return _numbered(path, number) if number else None


def _free_number(path: Path) -> int:
    number = 1
    while pieces(_numbered(path, number)):
        number += 1
    return number


def _numbered(path: Path, number: int) -> Path:
    return path.with_suffix(f".{number}{path.suffix}")
