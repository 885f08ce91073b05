"""What was measured of a machine and a model: against the floors, and as ceilings for a diagnosis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from phasetrace.analyze import physics
from phasetrace.analyze.physics import Ceiling, Shape
from phasetrace.model import Ceilings


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: `count` tokens read, or sequences written at a time; what a floor is of it."""

    count: int
    context: int
    seconds: float
    floor_s: float | None

    @property
    def efficiency(self) -> float | None:
        """Floor over measured; None where the floor is unknown."""
        return self.floor_s / self.seconds if self.floor_s is not None and self.seconds > 0 else None


@dataclass(frozen=True, slots=True)
class Seed:
    """So many tokens read at once, and as many written one by one."""

    tokens: int
    read_s: float
    written_s: float


@dataclass(frozen=True, slots=True)
class Bench:
    """All of a run. Bytes, operations and seconds."""

    device: str
    name: str
    dtype: str
    threads: int
    bandwidth_bytes_s: float
    flops_s: float
    shape: Shape | None = None
    prefill: tuple[Point, ...] = ()
    decode: tuple[Point, ...] = ()
    seed: Seed | None = None

    @property
    def ceilings(self) -> Ceilings:
        """For a diagnosis of what ran here."""
        return Ceilings(self.bandwidth_bytes_s, self.flops_s, "phasetrace bench")

    @property
    def per_sequence_s(self) -> float | None:
        """Seconds that a second sequence adds to a step."""
        steps = {p.count: p.seconds for p in self.decode if p.context == self.decode[0].context}
        return max(0.0, steps[2] - steps[1]) if 1 in steps and 2 in steps else None

    @property
    def fixed_s(self) -> float | None:
        """Seconds of a step at batch 1 beyond reading the weights: launching, Python, the sampler."""
        alone = next((p for p in self.decode if p.count == 1), None)
        if alone is None or alone.floor_s is None:
            return None
        return max(0.0, alone.seconds - alone.floor_s)


def bench(measured: Iterable[Mapping[str, Any]]) -> Bench | None:
    """From the measurements as they came; None where not even the machine was measured."""
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for line in measured:
        by_kind.setdefault(str(line.get("what")), []).append(line)
    if "machine" not in by_kind:
        return None
    machine = by_kind["machine"][0]
    ceiling = Ceiling(machine["bandwidth_bytes_s"], machine["flops_s"])
    shape = _shape(by_kind["model"][0]) if "model" in by_kind else None
    seed = by_kind.get("seed")
    return Bench(
        device=machine["device"],
        name=machine["name"],
        dtype=machine["dtype"],
        threads=machine["threads"],
        bandwidth_bytes_s=machine["bandwidth_bytes_s"],
        flops_s=machine["flops_s"],
        shape=shape,
        prefill=tuple(_read(line, shape, ceiling) for line in by_kind.get("prefill", ())),
        decode=tuple(_written(line, shape, ceiling) for line in by_kind.get("decode", ())),
        seed=Seed(seed[0]["tokens"], seed[0]["read_s"], seed[0]["written_s"]) if seed else None,
    )


def _shape(line: Mapping[str, Any]) -> Shape:
    each = line["weight_bytes"] / line["parameters"]
    return Shape(
        parameters=line["parameters"],
        bytes_per_weight=each,
        layers=line["layers"],
        kv_heads=line["kv_heads"],
        head_dim=line["head_dim"],
        hidden_size=line["hidden_size"],
        kv_bytes=each,
    )


def _read(line: Mapping[str, Any], shape: Shape | None, ceiling: Ceiling) -> Point:
    floor = physics.prefill_floor_s(shape, ceiling, line["tokens"]) if shape else None
    return Point(line["tokens"], 0, line["seconds"], floor)


def _written(line: Mapping[str, Any], shape: Shape | None, ceiling: Ceiling) -> Point:
    floor = physics.decode_floor_s(shape, ceiling, line["batch"], line["context"]) if shape else None
    return Point(line["batch"], line["context"], line["seconds"], floor)
