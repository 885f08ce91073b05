"""What the workers of an engine core tell of it: how long a step took on the device, what the weights weigh.

A worker runs in the core's own process or in a child of it. Both count the steps in the order in which they
were scheduled, modulo 65,536, and the tokens of a step tell whether the two counts are the same. A count may
come again, in a long run or where a process has one engine after the other: times tell which of them it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from phasetrace.assemble.spool import SegmentInfo

_WRAP = 1 << 16  # what a step's number is kept modulo
_KEPT = 2  # of those with the same number: a step takes its own long before there is a third


class Worker:
    """One process that executes steps."""

    def __init__(self, info: SegmentInfo) -> None:
        self.homes = {info.pid, info.parent_pid}  # the process of its core is one of these
        self.parameters: int | None = None
        self.weight_bytes: int | None = None
        # By number, in the order in which they were told: begin, tokens, nanoseconds on the device
        self.executed: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)

    def take(self, number: int, tokens: int, end: int) -> int:
        """What it took for the step of this number that ended then; -1 where it has not told."""
        told = self.executed.get(number, [])
        own = max((each for each in told if each[0] < end and each[1] == tokens), default=None)
        if own is None:
            return -1
        told.remove(own)
        if not told:
            del self.executed[number]
        return own[2]


class Workers:
    """All workers of a run."""

    def __init__(self) -> None:
        self._workers: dict[int, Worker] = {}  # by process

    def executed(self, info: SegmentInfo, number: int, tokens: int, begin: int, device_ns: int) -> None:
        """A worker executed a step."""
        told = self._of(info).executed[number % _WRAP]
        told.append((begin, tokens, device_ns))
        del told[:-_KEPT]

    def told(self, info: SegmentInfo, facts: Mapping[str, Any]) -> None:
        """A worker said what its shard of the model weighs."""
        worker = self._of(info)
        worker.parameters = _count(facts.get("worker_parameters"))
        worker.weight_bytes = _count(facts.get("worker_weight_bytes"))

    def device_ns(self, core: int, number: int, tokens: int, end: int) -> int:
        """What a step that ended then took on the slowest device of the core with this pid; -1: unknown."""
        own = (worker for worker in self._workers.values() if core in worker.homes)
        return max((worker.take(number, tokens, end) for worker in own), default=-1)

    def weights(self, core: int) -> dict[str, int]:
        """Parameters and bytes over all shards of the core with this pid, as far as they are known."""
        own = [worker for worker in self._workers.values() if core in worker.homes]
        parameters = [worker.parameters for worker in own if worker.parameters is not None]
        sizes = [worker.weight_bytes for worker in own if worker.weight_bytes is not None]
        return {"parameters": sum(parameters), "weight_bytes": sum(sizes)} if sizes else {}

    def _of(self, info: SegmentInfo) -> Worker:
        if info.pid not in self._workers:
            self._workers[info.pid] = Worker(info)
        return self._workers[info.pid]


def _count(value: object) -> int | None:
    return value if type(value) is int else None
