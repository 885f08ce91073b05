"""The trace file: JSON Lines that can be appended to and survive the death of who writes them."""

from __future__ import annotations

import os
import shutil
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
        append: go on in the file that is there instead.
        detail: how much to show of each request; all of it is kept in any case.

    Raises:
        OSError: by any method, when the file cannot be written.
    """

    def __init__(self, path: Path | str, append: bool = False, detail: Detail | str = Detail.AUTO) -> None:
        self.path = Path(path)
        if append:
            cut = _ends_within_a_line(self.path)
        else:
            cut = False
            keep_existing(self.path)
        self._file = open(self.path, "ab" if append else "wb")
        if cut:
            self._file.write(b"\n")
        self._spans = SpanMaker(Detail(detail))

    def write(self, recording: Recording) -> None:
        """Add a part of the recording."""
        for line in to_lines(self._spans.spans(recording)):
            self._file.write(line)
        self._file.flush()

    @property
    def is_deleted(self) -> bool:
        """Whether somebody has deleted it meanwhile; what was written is there until it is closed."""
        return os.fstat(self._file.fileno()).st_nlink == 0

    def continue_in(self, path: Path) -> None:
        """Go on in another file, which gets all that was written so far."""
        shutil.copyfile(f"/proc/self/fd/{self._file.fileno()}", path)
        self._file.close()
        self.path, self._file = path, open(path, "ab")

    def close(self) -> None:
        """No more parts will come."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def keep_existing(path: Path) -> None:
    """Move a file that is in the way to the next free number: trace.1.json, then trace.2.json."""
    if not path.is_file() or path.stat().st_size == 0:  # a pipe or a device is written to as it is
        return
    number = 1
    while (kept := path.with_suffix(f".{number}{path.suffix}")).exists():
        number += 1
    os.rename(path, kept)


def _ends_within_a_line(path: Path) -> bool:
    """Whether its last line was cut, so that what is appended must not be glued to it."""
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read() != b"\n"
    except OSError:
        return False
