"""Puts a recording together while the run goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from phasetrace.assemble.joins import Joins
from phasetrace.assemble.process_state import ProcessState
from phasetrace.assemble.spool import Record, SegmentInfo
from phasetrace.assemble.wall_clock import WallClock
from phasetrace.assemble.workers import Workers
from phasetrace.model import Defect, ModelFacts, Pause, Process, Recording, Request, Stage, Steps


class Assembler:
    """Records in, partial recordings out; what was given out is forgotten, so a long run fills no memory.

    A partial recording holds the requests that ended since the last one with all their steps, and repeats the
    facts that changed; of facts the latest word counts.
    """

    def __init__(self) -> None:
        self._wall = WallClock()
        self._joins = Joins()
        self._workers = Workers()
        self._processes: dict[str, ProcessState] = {}
        self._begin: int | None = None
        self._end: int | None = None
        self._defects: list[Defect] = []  # that were not given out yet
        self._ended_before: list[str] = []  # parts of engines that ended

    def feed(self, info: SegmentInfo, records: Iterable[Record]) -> None:
        """Take in what one read of a segment gave."""
        self._wall.pair(info.monotonic_ns, info.wall_ns)
        state = self._processes.get(info.process)
        if state is None:
            state = self._processes[info.process] = self._new(info)
        state.facts.segment(info)
        state.feed(records)

    def lost(self, key: str, records: int) -> None:
        """Count records that a process could not write at all."""
        if key not in self._processes:
            info = SegmentInfo(key, pid=0, parent_pid=0, number=0, execs=0, monotonic_ns=0, wall_ns=0)
            self._processes[key] = self._new(info)
        self._processes[key].facts.lost(records)

    def processes_ended(self, keys: Iterable[str]) -> None:
        """No more records will come of these: their live requests were cut off, and that is said.

        A part of an engine that has no requests of its own may have been the cause: it is named with them.
        """
        ended = [self._processes[key] for key in keys if key in self._processes]
        parts = [state.facts.title for state in ended if state.facts.serves and not state.under_way]
        for state in ended:
            if count := state.under_way:
                what = f"{count:,} request{'s' * (count != 1)}"
                said = [f"{state.facts.title} ended in the midst of {what}"]
                said += [f"{title} had ended before" for title in self._ended_before]
                said += [f"{title} ended with it" for title in parts]
                self._defects.append(Defect("; ".join(said)))
            state.end()
        self._ended_before += parts

    def holds_back(self, key: str) -> bool:
        """Whether something of this process was taken in and not given out: its segments would be needed."""
        return key in self._processes and self._processes[key].holds_back

    @property
    def under_way(self) -> int:
        """Requests that have arrived and not ended. Each part of an engine tells of the same ones."""
        told: Counter[str | None] = Counter()
        for state in self._processes.values():
            told[state.facts.role] += state.under_way
        return max(told.values(), default=0)

    def take(self) -> Recording:
        """What was completed since the last take."""
        requests: list[Request] = []
        steps: list[Steps] = []
        pauses: list[Pause] = []
        stages: list[Stage] = []
        models: dict[str, ModelFacts] = {}
        processes: list[Process] = []
        for state in self._processes.values():
            ended, cut = state.take()
            requests += ended
            steps += cut
            pauses += state.stretches.pauses()
            stages += state.stretches.stages()
            models |= state.models()
            if (process := state.process(with_counters=bool(ended))) is not None:
                processes.append(process)
        defects, self._defects = self._defects, []
        if not (requests or steps or pauses or stages or models or processes or defects):
            return Recording()
        self._widen(processes)
        return Recording(
            requests=tuple(requests),
            steps=tuple(steps),
            pauses=tuple(pauses),
            stages=tuple(stages),
            models=models,
            processes=tuple(processes),
            defects=tuple(defects),
            begin_ns=self._begin,
            end_ns=self._end,
        )

    def close(self) -> Recording:
        """The rest: nothing more will come, so requests without an end were cut off."""
        for state in self._processes.values():
            state.end()
        return self.take()

    def _new(self, info: SegmentInfo) -> ProcessState:
        return ProcessState(info, self._wall, self._joins, self._workers)

    def _widen(self, processes: Iterable[Process]) -> None:
        """Let the run reach over all of its processes."""
        begins = [t for t in (self._begin, *(p.begin_ns for p in processes)) if t is not None]
        ends = [t for t in (self._end, *(p.end_ns for p in processes)) if t is not None]
        self._begin = min(begins, default=None)
        self._end = max(ends, default=None)
