"""A process's facts, and what recording it cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from phasetrace.assemble.request_builder import model_key
from phasetrace.assemble.spool import SegmentInfo
from phasetrace.assemble.wall_clock import WallClock
from phasetrace.model import ModelFacts, Process
from phasetrace_agent import layout

_COSTED = {  # the kinds of records that hooks write, by the names under which the agent calibrates them
    layout.ARRIVED: "arrived",
    layout.MARK: "mark",
    layout.STEP: "step",
    layout.DETAIL: "detail",
    layout.PREFIX: "prefix",
    layout.FINISHED: "finished",
    layout.ENDED: "ended",
    layout.PAUSE: "pause",
    layout.DEVICE: "device",
    layout.EXECUTION: "execution",
}
# Of PROCESS facts: what has a place of its own
_NAMED = {"executable", "script", "python", "costs", "step_record_ns"}
_MODEL_FIELDS = {field.name for field in fields(ModelFacts)} - {"key"}


class ProcessFacts:
    """Collects what is said of a process; the latest word counts."""

    def __init__(self, info: SegmentInfo, wall: WallClock) -> None:
        self._info = info
        self._wall = wall
        self._process: dict[str, Any] = {}
        self._engines: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._knobs: dict[str, bool | int | float | str] = {}
        self._counts: Counter[int] = Counter()
        self._lost = 0
        self._troubles: dict[str, None] = {}
        self._uncovered: dict[str, None] = {}
        self._begin = info.monotonic_ns
        self._end = info.monotonic_ns
        self._given: Process | None = None
        self.models: dict[str, ModelFacts] = {}
        self._given_models: dict[str, ModelFacts] = {}

    @property
    def engine(self) -> str:
        """The process's engine, for requests that do not name theirs."""
        return next(iter(self._engines), "unknown")

    @property
    def title(self) -> str:
        """Who it is, for sentences: what it is to its engine, else the script it runs."""
        told = self._process
        who = self._knobs.get("role") or told.get("script") or told.get("executable") or "a program"
        return f"{who} (process {self._info.pid})"

    @property
    def serves(self) -> bool:
        """Whether it is a part of an engine that other processes' requests need."""
        return self.role is not None

    @property
    def role(self) -> str | None:
        """Which part that is."""
        return str(self._knobs["role"]) if "role" in self._knobs else None

    def add(self, scope: int, key: int, data: Mapping[str, Any]) -> None:
        """Merge a FACTS record."""
        if scope == layout.PROCESS:
            self._process.update(data)
        elif scope == layout.ENGINE:
            self._add_engine(data)
        elif scope == layout.MODEL:
            self._add_model(model_key(self._info.process, key), data)

    def _add_engine(self, data: Mapping[str, Any]) -> None:
        name = str(data.get("engine", "unknown"))
        if data.get("refused"):
            self._refused[name] = str(data["refused"])
        else:
            self._engines[name] = str(data.get("version") or self._engines.get(name, "unknown"))
        self._knobs |= _scalars(data, leave_out={"engine", "version", "refused"})

    def _add_model(self, key: str, data: Mapping[str, Any]) -> None:
        known = {name: value for name, value in data.items() if name in _MODEL_FIELDS}
        old = self.models.get(key, ModelFacts(key))
        merged = {name: getattr(old, name) for name in _MODEL_FIELDS} | known
        self.models[key] = ModelFacts(key, **merged)

    def new_models(self, weights: Mapping[str, Any]) -> dict[str, ModelFacts]:
        """The models of which something is new since the last call, with what their workers weighed."""
        known = {
            key: replace(model, **weights) if weights and model.weight_bytes is None else model
            for key, model in self.models.items()
        }
        new = {key: model for key, model in known.items() if self._given_models.get(key) != model}
        self._given_models |= new
        return new

    def trouble(self, data: Mapping[str, Any]) -> None:
        """Merge a TROUBLE record."""
        if "lost" in data:
            self._lost += int(data["lost"])
        if "where" in data:
            self._troubles[f"{data['where']}: {data.get('error', 'unknown')}"] = None
        if "uncovered" in data:
            self._uncovered[f"{data['uncovered']}: {data.get('why', 'unknown')}"] = None

    def lost(self, records: int) -> None:
        """Count records that were torn or not understood."""
        self._lost += records

    def count(self, kinds: Counter[int]) -> None:
        """Count records, for the cost of having written them."""
        self._counts.update(kinds)

    def segment(self, info: SegmentInfo) -> None:
        """Take note of another read of one of its segments."""
        self._begin = min(self._begin, info.monotonic_ns)
        self.lost(info.torn)

    def seen(self, monotonic: int) -> None:
        """The process was alive then."""
        self._end = max(self._end, monotonic)

    def _hook_ns(self, counted: Mapping[str, int]) -> int:
        """Time inside hooks: records x their calibrated cost, and for steps what they were seen to cost more.

        The calibration is a loop; between an engine's steps the same code runs with empty caches.
        """
        costs: Mapping[str, int] = self._process.get("costs") or {}
        seen, calibrated = self._process.get("step_record_ns"), costs.get("record")
        more: int = max(0, seen - calibrated) if seen and calibrated else 0
        return round(sum(costs.get(name, 0) * n for name, n in counted.items()) + more * counted["step"])

    def process(self, counters: bool) -> Process | None:
        """The process as known now; None where nothing is new since it was last given.

        Args:
            counters: whether it is news that it lives on and that its hooks were called.
        """
        counted = {name: self._counts[kind] for kind, name in _COSTED.items()}
        process = Process(
            key=self._info.process,
            pid=self._info.pid,
            parent_pid=self._info.parent_pid,
            executable=self._process.get("executable"),
            script=self._process.get("script"),
            python=self._process.get("python"),
            begin_ns=self._wall.at(self._begin) if self._begin else None,
            end_ns=self._wall.at(self._end) if self._end else None,
            engines=dict(self._engines),
            refused=dict(self._refused),
            facts=_scalars(self._process, leave_out=_NAMED) | self._knobs,
            hook_calls=sum(counted.values()),
            hook_ns=self._hook_ns(counted),
            lost_records=self._lost,
            troubles=tuple(self._troubles),
            uncovered=tuple(self._uncovered),
        )
        known = self._given
        if known is not None and not counters:
            known = replace(
                known, end_ns=process.end_ns, hook_calls=process.hook_calls, hook_ns=process.hook_ns
            )
        if process == known:
            return None
        self._given = process
        return process


def _scalars(data: Mapping[str, Any], leave_out: set[str]) -> dict[str, bool | int | float | str]:
    return {
        name: value
        for name, value in data.items()
        if name not in leave_out and isinstance(value, (bool, int, float, str))
    }
