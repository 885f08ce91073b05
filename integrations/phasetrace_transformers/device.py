"""What is known later: device times and tensors on a device. No call here waits for a device.

But for one, once a kind of device: making the buffer that tensors are copied through pins memory, for which
a driver may wait until the device is idle. It is made at the first request, where little is queued.
Locks are taken without waiting: one that a fork left held in the child costs device times, not the child.

Not verified on a GPU yet; tested against a fake device. Everything is polled when the next step or request
comes by.
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from phasetrace_agent.device_clock import POOL, DeviceClock

PINNED = 1 << 16  # elements of the pinned buffer that tensors are copied through; larger tensors stay unknown


class HostCopies:
    """Reads small tensors on a device: copied to the host behind the work queued so far, told when there."""

    def __init__(self, pinned: Any, new_event: Callable[[], Any]) -> None:
        self._pinned = (
            pinned  # one flat buffer of whole numbers, made once: making it may wait for the device
        )
        self._size = int(pinned.shape[0])
        self._new_event = new_event
        self._used = 0
        self._busy = threading.Lock()
        self._pending: deque[tuple[Any, Any, Callable[[list[list[int]]], None]]] = deque()

    def read(self, tensor: Any, tell: Callable[[list[list[int]]], None]) -> bool:
        """Have a two-dimensional tensor's content told later; False where there is no room or turn now."""
        rows, width = (int(n) for n in tensor.shape)
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if rows * width > self._size - self._used:
                return False
            buffer = self._pinned[self._used : self._used + rows * width].view(rows, width)
            self._used += rows * width
            buffer.copy_(tensor, non_blocking=True)
            event = self._new_event()
            event.record()
            self._pending.append((event, buffer, tell))
        finally:
            self._busy.release()
        return True

    def poll(self) -> None:
        """Tell what has arrived. The buffer is free again once all of it has."""
        if not self._busy.acquire(blocking=False):
            return  # another thread is at it
        arrived = []
        try:
            while self._pending and self._pending[0][0].query():
                _, buffer, tell = self._pending.popleft()
                arrived.append((tell, buffer.tolist()))
            if not self._pending:
                self._used = 0
        finally:
            self._busy.release()
        for tell, rows in arrived:
            tell(rows)


class Device:
    """One kind of device: its clock, and its way to the host."""

    def __init__(self, clock: DeviceClock, copies: HostCopies) -> None:
        self.clock = clock
        self.copies = copies

    def poll(self) -> None:
        """Tell all that is known by now."""
        self.clock.poll(POOL)
        self.copies.poll()


Done = Callable[[int, int, int], None]
_devices: dict[tuple[str, Done], Device | None] = {}  # each tells one recorder


def of(kind: str | None, done: Done) -> Device | None:
    """The device of this kind; None for the host and for devices without timed events."""
    if kind is None or kind in ("cpu", "meta"):
        return None
    place = (kind, done)
    if place not in _devices:
        _devices[place] = None  # where making it fails it is not tried again
        torch = sys.modules.get("torch")
        event = getattr(getattr(torch, kind, None), "Event", None)
        if event is not None:
            pinned = torch.empty(PINNED, dtype=torch.int64, pin_memory=True)  # type: ignore[union-attr]
            made = Device(DeviceClock(lambda: event(enable_timing=True), done), HostCopies(pinned, event))
            _devices[place] = made
            atexit.register(_last_poll, made)
    return _devices[place]


def _last_poll(device: Device) -> None:
    try:
        device.poll()
    except Exception:
        pass
