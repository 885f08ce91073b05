"""Counts records that could not be written, and tells of them even where nothing more fits on the disk."""

from __future__ import annotations

import os
from itertools import count

from . import layout, signals


class Losses:
    """The lost records of one process: told by a record once there is room, till then by a file's name.

    An empty file can be renamed on a full filesystem. It is renamed whenever the count has grown by an
    eighth, and at exit, so that even after SIGKILL the supervisor knows nearly all.
    """

    def __init__(self, folder: str, process: int):
        self.why = ""
        self.pending = 0  # about as many are lost and untold
        self._folder = folder
        self._process = process
        self._count = count(1)  # `next` is atomic, `+= 1` is not
        self._asked = 0
        self._taken = 0
        self._next_marker = 1
        self._marker = ""

    def add(self, why: str) -> int:
        """One more record is lost. Returns how many that makes."""
        self.why = why
        self.pending = lost = next(self._count) - self._asked - self._taken
        if lost >= self._next_marker:
            self._next_marker = lost + lost // 8 + 1
            self._mark(lost)
        return lost

    def take(self) -> int:
        """How many were lost since this was last asked; the marker goes."""
        self._asked += 1
        lost = next(self._count) - self._asked - self._taken
        self._taken += lost
        self._next_marker = 1
        self.pending = 0
        if self._marker:
            _quietly(os.unlink, self._marker)
            self._marker = ""
        return lost

    def at_exit(self) -> None:
        """Make the marker exact."""
        if self._marker:
            self._asked += 1
            self._mark(next(self._count) - self._asked - self._taken)

    def _mark(self, lost: int) -> None:
        path = os.path.join(self._folder, layout.lost_name(self._process, lost, self.why))
        if path == self._marker:
            return
        if self._marker:
            done = _quietly(os.rename, self._marker, path)
        else:
            done = _quietly(_create, path)
        if done:
            self._marker = path


def _create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _quietly(do, *args) -> bool:  # type: ignore[no-untyped-def]
    try:
        do(*args)
    except OSError as error:
        signals.pass_on(error)
        return False
    return True
