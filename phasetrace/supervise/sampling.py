"""Looks at recorded processes and the host's devices from outside, about once a second.

It costs the application nothing: what is read is the kernel's own count of a process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from phasetrace.model import Samples, Usage
from phasetrace.supervise.devices import Devices
from phasetrace.supervise.processes import User, stat_fields

EVERY_S = 1.0
KEPT = 10  # looks between two hand-overs
UNKNOWN = -1
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_UTIME, _STIME, _THREADS, _RSS = 11, 12, 17, 21  # fields of /proc/PID/stat after the name

Place = tuple[str, int | None]  # a process, or "" and a device
Look = dict[Usage, int]


class Sampler:
    """Keeps looks until they are taken."""

    def __init__(self) -> None:
        self._devices = Devices()
        self._kept: dict[Place, list[tuple[int, Look]]] = {}
        self._next_s = 0.0

    def look(self, processes: Iterable[User]) -> None:
        """Look, if the time has come."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        now = time.time_ns()
        for process in processes:
            if (seen := usage_of(process.pid, process.started)) is not None:
                self._kept.setdefault((process.key, None), []).append((now, seen))
        for device, seen in self._devices.look():
            self._kept.setdefault(("", device), []).append((now, seen))

    def take(self, all_of_it: bool = False) -> tuple[Samples, ...]:
        """What has come together, once it is worth a span."""
        ripe = [p for p, looks in self._kept.items() if all_of_it or len(looks) >= KEPT]
        return tuple(_samples(place, self._kept.pop(place)) for place in ripe)


def usage_of(pid: int, started: int) -> Look | None:
    """What a process has used so far; None where it is gone."""
    fields = stat_fields(pid, started)
    if fields is None:
        return None
    return {
        Usage.CPU: (int(fields[_UTIME]) + int(fields[_STIME])) * _TICK_NS,
        Usage.CPU_DELAY: _delay_ns(pid),
        Usage.MEMORY: int(fields[_RSS]) * _PAGE,
        Usage.THREADS: int(fields[_THREADS]),
    }


def _delay_ns(pid: int) -> int:
    """Summed over the threads that live now; a kernel without that count tells none."""
    total = 0
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return UNKNOWN
    return total


def _samples(place: Place, looks: list[tuple[int, Look]]) -> Samples:
    times = np.array([at for at, _ in looks], np.int64)
    names = {name for _, look in looks for name in look}
    columns = {
        name: np.array([look.get(name, UNKNOWN) for _, look in looks], np.int64) for name in sorted(names)
    }
    return Samples(place[0], place[1], times, columns)
