"""The last row of a terminal, kept free below what the application prints, as apt does for its progress.

Whatever the application writes scrolls above it: a line that is drawn between an application's own would
wipe out what it has begun to print, be it a streamed answer or a progress bar.
"""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from typing import TextIO

LEAST_ROWS = 4  # a smaller terminal keeps all its rows

# DEC's own sequences, which every terminal knows. Saving the cursor saves the application's colours, too.
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_MAKE_ROOM = "\x1bD\x1b[A"  # down a row and up again: from the last row, all scrolls up by one
_PLAIN = "\x1b[0m"
_CLEAR = "\x1b[2K"


class Footer:
    """Shows one line there; `close` gives the row back, which happens at the latest when Python ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rows = 0  # of the terminal, while the last is kept free
        atexit.register(self.close)

    def show(self, line: str) -> None:
        """Replace what stands there; nothing while another job has the terminal."""
        rows = self._height()
        if rows < LEAST_ROWS or not self._is_ours():
            return
        text = ""
        if rows != self._rows:
            text += f"{_MAKE_ROOM}{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}"
            self._rows = rows
        self._write(f"{text}{_SAVE}\x1b[{rows};1H{_PLAIN}{_CLEAR}{line}{_RESTORE}")

    def close(self) -> None:
        """Clear the row and let all rows scroll again."""
        atexit.unregister(self.close)
        rows, self._rows = self._rows, 0
        if rows:
            self._write(f"{_SAVE}\x1b[{rows};1H{_PLAIN}{_CLEAR}\x1b[r{_RESTORE}")

    def _height(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).lines
        except (OSError, ValueError):
            return 0

    def _is_ours(self) -> bool:
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):  # not the terminal that controls us: then nobody else's jobs are on it
            return True

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # whoever closed stderr does not want to see it
            self._stream.write(text)
            self._stream.flush()
