"""What processes got of the host's CPUs and devices, from the samples that were taken of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from phasetrace.model import Ints, Recording, Request, Samples, Usage


@dataclass(frozen=True, slots=True)
class HostUse:
    """Over the time of some requests, summed over the processes that were looked at."""

    cpu_ns: int  # CPU time that they took
    delay_ns: int | None  # time in which their threads could have run and had no CPU
    wall_ns: int  # that the samples cover
    device_busy: float | None  # mean share of the time, over devices

    @property
    def starved(self) -> float | None:
        """Of the time in which threads wanted a CPU, the share in which they had none."""
        wanted = self.cpu_ns + (self.delay_ns or 0)
        return None if self.delay_ns is None or not wanted else self.delay_ns / wanted


def host_use(recording: Recording, requests: Iterable[Request]) -> HostUse | None:
    """What was used while the requests were under way; None where nobody looked twice in that time."""
    spans = [(r.arrival_ns, r.finished_ns) for r in requests if r.finished_ns is not None]
    if not spans:
        return None
    begin, end = min(first for first, _ in spans), max(last for _, last in spans)
    cpu = delay = wall = 0
    delays_known = True
    by_process: dict[str, list[Samples]] = {}
    for samples in recording.samples:
        if samples.device is None:
            by_process.setdefault(samples.process, []).append(samples)
    for taken in by_process.values():
        times = np.concatenate([samples.times_ns for samples in taken])
        inside = (times >= begin) & (times <= end)
        if inside.sum() < 2:
            continue
        cpu += _growth(_column(taken, Usage.CPU)[inside])
        waited = _column(taken, Usage.CPU_DELAY)[inside]
        delays_known = delays_known and bool((waited >= 0).all())
        delay += _growth(waited)
        wall = max(wall, int(times[inside][-1] - times[inside][0]))
    if not wall:
        return None
    return HostUse(cpu, delay if delays_known else None, wall, _device_busy(recording, begin, end))


def _column(taken: Iterable[Samples], usage: Usage) -> Ints:
    """One column over the samples of a process; -1 where it was not read."""
    unread = [samples.columns.get(usage, np.full(len(samples), -1, np.int64)) for samples in taken]
    return np.concatenate(unread)


def _growth(counts: Ints) -> int:
    """How much a count grew; one that fell lost a thread that ended, and began anew."""
    return int(np.maximum(np.diff(counts), 0).sum())


def _device_busy(recording: Recording, begin: int, end: int) -> float | None:
    percents = [
        samples.columns[Usage.DEVICE_BUSY][(samples.times_ns >= begin) & (samples.times_ns <= end)]
        for samples in recording.samples
        if Usage.DEVICE_BUSY in samples.columns
    ]
    known = [column[column >= 0] for column in percents]
    every = np.concatenate(known) if known else np.zeros(0)
    return float(every.mean()) / 100 if len(every) else None
