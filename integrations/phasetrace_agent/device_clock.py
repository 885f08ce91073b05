"""Times on a device, by pairs of events on the stream that the work runs on. No call here waits for a device.

Pairs are polled when the next forward comes by. The lock is taken without waiting: one that a fork left held
in the child costs device times, not the child. Tested against a fake device.
"""

from __future__ import annotations

import threading
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

POOL = 64  # pairs of events; a step beyond that goes without device time
POLLS = 4  # pairs looked at a step


class DeviceClock:
    """Times forwards with pairs of events on the stream they run on."""

    def __init__(self, new_event: Callable[[], Any], done: Callable[..., None]) -> None:
        self._new_event = new_event
        self._done = done  # what was said at the end, then nanoseconds
        self._free: list[tuple[Any, Any]] = []
        self._made = 0
        self._pending: deque[tuple[tuple[int, ...], tuple[Any, Any]]] = deque()
        self._polling = threading.Lock()

    def begin(self) -> tuple[Any, Any] | None:
        """A forward is about to be queued. None where all pairs are in use."""
        try:
            pair = self._free.pop()
        except IndexError:
            if self._made >= POOL:
                return None
            self._made += 1
            pair = (self._new_event(), self._new_event())
        pair[0].record()
        return pair

    def end(self, pair: tuple[Any, Any], *about: int) -> None:
        """That forward has been queued; `about` says which it was."""
        pair[1].record()
        self._pending.append((about, pair))

    def poll(self, limit: int = POLLS) -> None:
        """Tell the times of the pairs that the device has passed."""
        if not self._polling.acquire(blocking=False):
            return  # another thread is at it
        try:
            for _ in range(min(limit, len(self._pending))):
                about, pair = self._pending[0]
                if not pair[1].query():
                    return
                self._pending.popleft()
                self._done(*about, int(pair[0].elapsed_time(pair[1]) * 1e6))
                self._free.append(pair)
        finally:
            self._polling.release()

    def give_back(self, pair: tuple[Any, Any]) -> None:
        """That forward failed."""
        self._free.append(pair)
