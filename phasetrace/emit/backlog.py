"""Spans that wait for an endpoint, up to a number of bytes: beyond it the oldest make room for the newest."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from phasetrace.mapping import ResourceSpans

VALUE = 32  # bytes, about, of one value in memory, or of one letter in 32
_SPAN = 16 * VALUE  # what a span takes besides its attributes
_TOKEN = 5 * 8  # a token span is a row of five columns


@dataclass(frozen=True)
class Part:
    """Spans that came together."""

    groups: list[ResourceSpans]

    def __len__(self) -> int:
        return sum(map(len, self.groups))

    @cached_property
    def nbytes(self) -> int:
        """About how much memory they take."""
        spans = [span for group in self.groups for span in group.spans]
        tokens = sum(len(run) for group in self.groups for run in group.tokens)
        return sum(_SPAN + VALUE * values(s.name, s.attributes) for s in spans) + _TOKEN * tokens


def values(name: str, attributes: Mapping[str, object] | None) -> int:
    """How many values the attributes of a span are worth: arrays are long, and names may be of any length."""
    return len(name) // VALUE + sum(map(_worth, (attributes or {}).values()))


def _worth(value: object) -> int:
    if isinstance(value, Sequence):
        return 1 + len(value) // VALUE if isinstance(value, (str, bytes)) else len(value)
    return 1


class Backlog:
    """A queue between two threads that drops the oldest.

    Args:
        most_bytes: of all that waits, with what was taken last, until the next is asked for; None for any.
            A part that is larger by itself waits all the same, alone.
    """

    def __init__(self, most_bytes: int | None) -> None:
        self._most = most_bytes
        self._parts: deque[Part] = deque()
        self._waiting = self._taken = 0  # bytes
        self._ended = False
        self._changed = threading.Condition()

    def put(self, part: Part) -> int:
        """Add a part; returns how many spans were dropped for it."""
        dropped = 0
        with self._changed:
            while self._parts and self._is_full(part.nbytes):
                oldest = self._parts.popleft()
                self._waiting -= oldest.nbytes
                dropped += len(oldest)
            self._parts.append(part)
            self._waiting += part.nbytes
            self._changed.notify()
        return dropped

    def end(self) -> None:
        """No more will be put."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def take(self, patience_s: float) -> Part | None:
        """The oldest part; an empty one where none came in time, None after the last."""
        with self._changed:
            self._taken = 0
            self._changed.wait_for(lambda: self._parts or self._ended, patience_s)
            if not self._parts:
                return None if self._ended else Part([])
            part = self._parts.popleft()
            self._taken = part.nbytes
            self._waiting -= part.nbytes
            return part

    def _is_full(self, more: int) -> bool:
        return self._most is not None and self._taken + self._waiting + more > self._most
