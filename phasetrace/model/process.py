"""What was recorded of a process beside its requests: what it ran, its start, its stops, its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Pause:
    """A stop of a whole process: the garbage collector's, for one."""

    process: str
    kind: str  # gc
    begin_ns: int
    end_ns: int
    detail: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of an engine's start: loading the model, warming up, capturing graphs. Stages may nest."""

    process: str
    name: str  # device-start | model-load | profiling | warm-up | compile | graph-capture | kv-cache | ...
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's shape, as far as the engine tells. Sizes in bytes, counts plain."""

    key: str
    name: str | None = None
    architecture: str | None = None
    parameters: int | None = None
    active_parameters: int | None = None
    weight_bytes: int | None = None
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocabulary: int | None = None
    max_context: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    device: str | None = None  # cpu | cuda | mps | ...
    offloaded_bytes: int | None = None
    encoder_decoder: bool | None = None
    compiled: bool | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """One recorded process: what it ran and what recording it cost."""

    key: str  # 16 hex digits, unique
    pid: int
    parent_pid: int
    executable: str | None = None  # basename only
    script: str | None = None  # basename only
    python: str | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    engines: Mapping[str, str] = field(default_factory=dict)  # engine -> version
    refused: Mapping[str, str] = field(default_factory=dict)  # engine -> why it is not hooked
    facts: Mapping[str, bool | int | float | str] = field(default_factory=dict)  # knobs, device, threads
    hook_calls: int = 0
    hook_ns: int = 0  # time inside hooks: calls x the cost calibrated at start
    lost_records: int = 0
    troubles: tuple[str, ...] = ()  # hooks that disabled themselves: "where: ExceptionType"
    uncovered: tuple[str, ...] = ()  # Python children that run without phasetrace: "basename flags: why"
