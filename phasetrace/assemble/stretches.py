"""The stretches of time of a whole process: its stops, and the stages of its start."""

from __future__ import annotations

from phasetrace.assemble.wall_clock import WallClock, possible
from phasetrace.model import Pause, Stage
from phasetrace_agent import layout


class Stretches:
    """Collects them until they are given out; times wait for the best known wall clock."""

    def __init__(self, process: str, wall: WallClock) -> None:
        self._process = process
        self._wall = wall
        self._pauses: list[tuple[int, int, int, int, int]] = []
        self._stages: list[tuple[str, int, int]] = []

    def add_pause(self, payload: bytes) -> None:
        """Take in a PAUSE; ValueError where its times are impossible."""
        kind, generation, begin, end, collected = layout.decode_pause(payload)
        possible(begin, end)
        self._pauses.append((kind, generation, begin, end, collected))

    def add_stage(self, payload: bytes) -> None:
        """Take in a STAGE."""
        _, _, begin, data = layout.decode_blob(payload)
        self._stages.append((str(data["name"]), begin, int(data["end"])))

    def pauses(self) -> list[Pause]:
        """The pauses since the last call."""
        taken, self._pauses = self._pauses, []
        return [self._pause(*values) for values in taken]

    def _pause(self, kind: int, generation: int, begin: int, end: int, collected: int) -> Pause:
        name = "gc" if kind == layout.GC else str(kind)
        detail = {"generation": generation, "collected": collected}
        return Pause(self._process, name, self._wall.at(begin), self._wall.at(end), detail)

    def stages(self) -> list[Stage]:
        """The stages since the last call."""
        taken, self._stages = self._stages, []
        at, key = self._wall.at, self._process
        return [Stage(key, name, at(begin), at(end)) for name, begin, end in taken]
