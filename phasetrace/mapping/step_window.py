"""The times of the latest steps: a request's tokens can be placed although its steps came in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from phasetrace.model import Ints, Request, Steps

_ROWS = (
    1 << 18
)  # 4 MB; a request that spans more steps gets no token spans, the file has its steps all the same


class StepWindow:
    """Keeps the latest steps of all streams, oldest dropped first, and which of them a file lacks."""

    def __init__(self, rows: int = _ROWS) -> None:
        self._room = rows
        self._pieces: deque[Steps] = deque()
        self._streams: dict[tuple[str, int], deque[Steps]] = {}
        self._absent: dict[tuple[str, int], deque[Steps]] = {}

    def add(self, steps: Iterable[Steps]) -> None:
        """Take in newer steps."""
        for piece in steps:
            self._pieces.append(piece)
            self._streams.setdefault((piece.process, piece.stream), deque()).append(piece)
            self._room -= len(piece)
        while self._room < 0 and len(self._pieces) > 1:
            self._drop(self._pieces.popleft())

    def begin_anew(self) -> None:
        """From now on another file is written, which has none of the steps so far."""
        self._absent = {stream: deque(pieces) for stream, pieces in self._streams.items()}

    def take_absent(self, request: Request) -> list[Steps]:
        """What the file lacks of the request's steps, to be written into it."""
        first, last = request.first_step, request.last_step
        if request.stream is None or first is None or last is None:
            return []
        others: deque[Steps] = deque()
        wanted: list[Steps] = []
        for piece in self._absent.get((request.process, request.stream), ()):
            needed = piece.first_index <= last and piece.first_index + len(piece) > first
            (wanted if needed else others).append(piece)
        if wanted:
            self._absent[request.process, request.stream] = others
        return wanted

    def times(self, request: Request) -> tuple[Ints, Ints] | None:
        """Begin and end of each step from the request's first to its last; None where some are not here."""
        if request.stream is None or request.first_step is None or request.last_step is None:
            return None
        begins: list[Ints] = []
        ends: list[Ints] = []
        wanted = request.first_step
        for piece in self._streams.get((request.process, request.stream), ()):
            low, high = wanted - piece.first_index, request.last_step + 1 - piece.first_index
            if 0 <= low < min(high, len(piece)):
                begins.append(piece.begin_ns[low:high])
                ends.append(piece.end_ns[low:high])
                wanted += len(begins[-1])
        if not begins or wanted != request.last_step + 1:
            return None
        return np.concatenate(begins), np.concatenate(ends)

    def _drop(self, piece: Steps) -> None:
        key = (piece.process, piece.stream)
        self._streams[key].popleft()
        if not self._streams[key]:
            del self._streams[key]
        absent = self._absent.get(key)
        if absent and absent[0] is piece:
            absent.popleft()
        if not absent:
            self._absent.pop(key, None)
        self._room += len(piece)
