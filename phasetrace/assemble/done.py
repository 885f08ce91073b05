"""Which requests of a process were given out."""

from __future__ import annotations

from typing import Any


class Done:
    """The ids of the requests that were given out: a set whose dense beginning is one number."""

    def __init__(self) -> None:
        self._below = 1
        self._above: set[int] = set()

    def add(self, ident: int) -> None:
        """This one was."""
        self._above.add(ident)
        while self._below in self._above:
            self._above.remove(self._below)
            self._below += 1

    def __contains__(self, ident: Any) -> bool:
        return ident < self._below or ident in self._above
