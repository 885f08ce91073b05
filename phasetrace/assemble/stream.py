"""The steps of one stream as they come in, until they are cut into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from phasetrace.assemble.wall_clock import WallClock, possible
from phasetrace.assemble.workers import Workers
from phasetrace.model import Ints, Part, Steps
from phasetrace_agent import layout

CHUNK = 1024  # steps at most in one cut: what one span of the file holds
_PARTS = [Part(name) for name in layout.PARTS]

Step = dict[str, Any]  # as layout.decode_step gives it
RowsOf = Callable[[int], int]  # request id -> its rows in the batch
AdapterOf = Callable[[int], int | None]


class Stream:
    """Steps of one `generate()` call or one engine core, by index.

    Payloads stay encoded until they are cut, which is about a tenth of their size as Python objects.
    """

    def __init__(self, process: str, ident: int, pid: int, workers: Workers) -> None:
        self.process = process
        self.ident = ident
        self._pid = pid
        self._workers = workers  # who may know how long a step took on the device
        self.times: dict[int, tuple[int, int]] = {}  # begin and end, monotonic; kept for live requests
        self._payloads: dict[int, bytes] = {}
        self._device: dict[int, int] = {}
        self._tokens: dict[int, tuple[int, int, int]] = {}  # proposed, accepted, discarded
        self._members: dict[int, int] = {}  # request -> rows, as of the last cut
        self._adapters: dict[int, int] = {}  # request -> LoRA adapter, of those that have one
        self._states: dict[int, tuple[int, ...]] = {}  # by the step from which on it holds
        self._state: tuple[int, ...] | None = (
            None  # as of the last cut: time, waiting, KV blocks, reason, preempted
        )
        self._settled = -1  # newest step at the last take; later ones may still get their device time

    def add(self, payload: bytes) -> Step:
        """Keep a step, and give it back decoded; ValueError where its times are impossible."""
        step: Step = layout.decode_step(payload)
        end = step["ends"][-1] if step["ends"] else step["begin"]
        possible(step["begin"], *step["ends"])
        self._payloads[step["index"]] = payload
        self.times[step["index"]] = (step["begin"], end)
        return step

    def device(self, index: int, nanoseconds: int) -> None:
        """Take note of a step's time on the device, unless it was cut already."""
        if index in self._payloads:
            self._device[index] = nanoseconds

    def state(self, index: int, time: int, *values: int) -> None:
        """Take note of the queue and the KV cache from a step on; of several the latest counts.

        `values` are the requests that wait, the KV blocks used, the reason, and the requests preempted.
        """
        self._states[index] = max(self._states.get(index, (0,)), (time, *values))

    def tokens(self, index: int, proposed: int, accepted: int, discarded: int) -> None:
        """Take note of a step's tokens that were speculated or discarded."""
        self._tokens[index] = proposed, accepted, discarded

    @property
    def last_index(self) -> int | None:
        """The newest step that is known."""
        return max(self.times, default=None)

    @property
    def first_index(self) -> int | None:
        """The oldest step that is known."""
        return min(self.times, default=None)

    def settled(self, needed: int) -> list[int]:
        """The steps that were here at the last call, and all up to the step `needed`; oldest first."""
        until = max(self._settled, needed)
        ready = sorted(index for index in self._payloads if index <= until)
        self._settled = max(self._payloads, default=self._settled)
        return ready

    def waiting(self) -> list[int]:
        """All steps that were not cut yet, oldest first."""
        return sorted(self._payloads)

    def forget(self, before: int) -> None:
        """Drop the times of steps that no live request needs."""
        for index in [i for i in self.times if i < before and i not in self._payloads]:
            del self.times[index]

    def cut(
        self,
        indices: Sequence[int],
        wall: WallClock,
        rows_of: RowsOf,
        given: Ints | None = None,
        adapter_of: AdapterOf | None = None,
    ) -> Iterator[Steps]:
        """Turn the steps `indices` into columns, in unbroken runs of at most CHUNK.

        Args:
            indices: in order.
            wall: converts times.
            rows_of: the rows of a request.
            given: tokens given out by each of the steps, where more is known than the steps themselves say.
            adapter_of: the LoRA adapter of a request, by number.
        """
        at = 0
        for run in _unbroken(indices):
            counts = None if given is None else given[at : at + len(run)]
            yield self._columns(run, wall, rows_of, adapter_of, counts)
            at += len(run)

    def _columns(
        self,
        run: list[int],
        wall: WallClock,
        rows_of: RowsOf,
        adapter_of: AdapterOf | None,
        given: Ints | None,
    ) -> Steps:
        steps = [layout.decode_step(self._payloads.pop(index)) for index in run]
        batch = self._batch(steps, rows_of, adapter_of)
        if given is not None:
            batch["new_tokens"] = given
        device = [
            self._device_of(step, int(n)) for step, n in zip(steps, batch["computed_tokens"], strict=True)
        ]
        told = self._told(run)
        adapters = batch.pop("adapters")
        times = np.array([self.times[index] for index in run], np.int64) + wall.offset
        return Steps(
            process=self.process,
            stream=self.ident,
            first_index=run[0],
            begin_ns=times[:, 0].copy(),
            end_ns=times[:, 1].copy(),
            parts=_parts(steps),
            device_ns=np.array(device, np.int64) if max(device) >= 0 else None,
            adapters=adapters if told else None,
            **batch,
            **told,
        )

    def _device_of(self, step: Step, computed: int) -> int:
        """What a step took on the device, by itself or by the workers; -1 where unknown."""
        own = self._device.pop(step["index"], -1)
        end = self.times[step["index"]][1]
        return own if own >= 0 else self._workers.device_ns(self._pid, step["number"], computed, end)

    def _told(self, run: list[int]) -> dict[str, Ints]:
        """What is said of steps where it is out of the ordinary; nothing where an engine never says it."""
        rows = []
        for index in run:
            self._state = self._states.pop(index, self._state)
            rows.append((*(self._state or (0, 0, 0, 0, 0))[1:], *self._tokens.pop(index, (0, 0, 0))))
        names = ("waiting", "kv_blocks", "waits", "preempted", "proposed", "accepted", "discarded")
        return _by_name(names, rows) if self._state is not None else {}

    def _batch(self, steps: Iterable[Step], rows_of: RowsOf, adapter_of: AdapterOf | None) -> dict[str, Ints]:
        """What each step computed and gave out, and for how many, from what changed in the batch."""
        counts = []
        for step in steps:
            for request in step["joined"]:
                self._members[request] = rows_of(request)
                adapter = adapter_of(request) if adapter_of is not None else None
                if adapter is not None:
                    self._adapters[request] = adapter
            rows = sum(self._members.values())
            new = sum((n - 1) * self._members.get(request, 1) for request, n in step["yielded"])
            computed = sum(n - self._members.get(request, 1) for request, n in step["scheduled"])
            idle = sum(self._members.get(request, 1) for request, n in step["scheduled"] if n == 0)
            adapters = len(set(self._adapters.values()))
            counts.append((max(rows - idle, 0), max(rows + new, 0), max(rows + computed, 0), adapters))
            for request in step["left"]:
                self._members.pop(request, None)
                self._adapters.pop(request, None)
        return _by_name(("running", "new_tokens", "computed_tokens", "adapters"), counts)


def _by_name(names: Sequence[str], rows: Sequence[tuple[int, ...]]) -> dict[str, Ints]:
    columns = np.array(rows, np.int64).T
    return {name: column.copy() for name, column in zip(names, columns, strict=True)}


def _parts(steps: Sequence[Step]) -> dict[Part, Ints]:
    columns: dict[int, Ints] = {}
    for row, step in enumerate(steps):
        begin = step["begin"]
        for code, end in zip(step["codes"], step["ends"], strict=True):
            known = code if code < len(_PARTS) else 0
            if known not in columns:
                columns[known] = np.zeros(len(steps), np.int64)
            columns[known][row] += end - begin
            begin = end
    return {_PARTS[code]: columns[code] for code in sorted(columns)}


def _unbroken(indices: Sequence[int]) -> Iterator[list[int]]:
    run: list[int] = []
    for index in indices:
        if run and (index != run[-1] + 1 or len(run) == CHUNK):
            yield run
            run = []
        run.append(index)
    if run:
        yield run
