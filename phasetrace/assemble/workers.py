"""What the workers of an engine core tell of it: how long a step took on the device, what the weights weigh.

A worker runs in the core's own process or in a child of it. Both count the steps in the order in which they
were scheduled, modulo 65,536, and the tokens of a step tell whether the two counts are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phasetrace.assemble.spool import SegmentInfo

_WRAP = 1 << 16  # what a step's number is kept modulo


class Worker:
    """One process that executes steps."""

    def __init__(self, info: SegmentInfo) -> None:
        self.homes = {info.pid, info.parent_pid}  # the process of its core is one of these
        self.parameters: int | None = None
        self.weight_bytes: int | None = None
        self.executed: dict[int, tuple[int, int]] = {}  # by number: tokens, nanoseconds on the device


class Workers:
    """All workers of a run."""

    def __init__(self) -> None:
        self._workers: dict[int, Worker] = {}  # by process

    def executed(self, info: SegmentInfo, number: int, tokens: int, device_ns: int) -> None:
        """A worker executed a step."""
        self._of(info).executed[number % _WRAP] = tokens, device_ns

    def told(self, info: SegmentInfo, facts: Mapping[str, Any]) -> None:
        """A worker said what its shard of the model weighs."""
        worker = self._of(info)
        worker.parameters = _count(facts.get("worker_parameters"))
        worker.weight_bytes = _count(facts.get("worker_weight_bytes"))

    def device_ns(self, core: int, number: int, tokens: int) -> int:
        """What a step took on the slowest device of the core with this pid; -1 where unknown."""
        longest = -1
        for worker in self._workers.values():
            if core in worker.homes and worker.executed.get(number, (0, 0))[0] == tokens:
                longest = max(longest, worker.executed.pop(number)[1])
        return longest

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
