"""What a group of a table was set to: engine, model and hardware, its own before those of the whole table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from phasetrace.advise.knobs import BUDGETS, CAPS, PARALLEL, first_number
from phasetrace.analyze.devices import device
from phasetrace.analyze.physics import Ceiling, Shape, bytes_of
from phasetrace.analyze.shapes import known_shape
from phasetrace.model import Group, Knobs, Table

SERVERS = ("vllm", "sglang", "tgi", "tensorrt-llm")  # load a checkpoint in the 16 bits of its own
AS_SERVED = 2.0  # bytes a weight


@dataclass(frozen=True)
class Stated:
    """A group, seen with the table's engine, model and hardware. None is unknown."""

    table: Table
    group: Group
    place: int

    @cached_property
    def name(self) -> str:
        """How evidence speaks of it."""
        return f"group {self.group.label or self.place + 1}"

    @cached_property
    def knobs(self) -> Knobs:
        """The engine's settings, those of the group before those of the table."""
        return {**self.table.knobs, **(self.group.knobs or {})}

    def knob(self, *names: str) -> float | None:
        """The first of these settings that is a number."""
        return first_number(self.knobs, *names)

    @property
    def cap(self) -> float | None:
        """Sequences that may run at once."""
        return self.knob(*CAPS)

    @property
    def budget(self) -> float | None:
        """Tokens that one step may compute."""
        return self.knob(*BUDGETS)

    @property
    def devices(self) -> float:
        """How many devices share the model."""
        own = next((v for n, v in (self.group.knobs or {}).items() if n in PARALLEL), None)
        stated = self.group.devices or (own if isinstance(own, int) else None)
        return stated or self.table.hardware.count or self.knob(*PARALLEL) or 1.0

    @property
    def counted(self) -> bool:
        """Whether it is told how many they are; else it may be a node full of them."""
        return bool(self.group.devices or self.table.hardware.count or self.knob(*PARALLEL))

    @property
    def dtype(self) -> str | None:
        """Of the computation."""
        return self.group.dtype or self._set("dtype") or self.table.model.dtype

    @property
    def quantization(self) -> str | None:
        """Of the weights; `none` and the like are none."""
        said = self.group.quantization or self._set("quantization") or self.table.model.quantization
        if said is None and self.group.dtype is None and (self.table.model.bytes_per_weight or 2.0) < 1.5:
            return f"{self.table.model.bytes_per_weight:.2g}-byte"
        return None if said and said.lower() in ("none", "no", "off", "false") else said

    def _set(self, name: str) -> str | None:
        value = self.knobs.get(name)
        return value if isinstance(value, str) and value.lower() != "auto" else None

    @cached_property
    def stated_shape(self) -> Shape | None:
        """The model's, from the table, completed by what is known of its name."""
        m, known = self.table.model, known_shape(self.table.model.name)
        own = bytes_of(self.group.quantization) or bytes_of(self.group.dtype)
        of_knobs = bytes_of(self._set("quantization")) or bytes_of(self._set("dtype"))
        of_name = bytes_of(m.name) or (known.bytes_per_weight if known else None)
        of_model = m.bytes_per_weight or bytes_of(m.quantization) or bytes_of(m.dtype) or of_name
        return self._shape(own or of_knobs or of_model)

    @cached_property
    def served_shape(self) -> Shape | None:
        """The same with 16-bit weights, which servers use where nothing else is asked for."""
        return self._shape(AS_SERVED) if self.table.engine in SERVERS and not self.quantization else None

    def _shape(self, per_weight: float | None) -> Shape | None:
        m, known = self.table.model, known_shape(self.table.model.name)
        parameters = m.parameters or (known.parameters if known else None)
        if not parameters or not per_weight:
            return None
        kv = bytes_of(str(self.knobs.get("kv_cache_dtype", ""))) or 2.0
        same = known if known and abs(known.parameters / parameters - 1) < 0.2 else None
        return Shape(
            parameters=parameters,
            bytes_per_weight=per_weight,
            active_parameters=m.active_parameters or (same.active_parameters if same else None),
            layers=m.layers or (same.layers if same else None),
            kv_heads=m.kv_heads or (same.kv_heads if same else None),
            head_dim=m.head_dim or (same.head_dim if same else None),
            hidden_size=m.hidden_size or (same.hidden_size if same else None),
            kv_bytes=kv,
        )

    @cached_property
    def ceiling(self) -> Ceiling | None:
        """What the devices can do together, from the table, completed by data sheets."""
        h, known, n = self.table.hardware, device(self.table.hardware.name), self.devices
        bandwidth = h.memory_bandwidth_gb_s or (known.bandwidth_gb_s if known else None)
        flops = h.tflops or (known.tflops if known else None)
        memory = h.memory_gb or (known.memory_gb if known else None)
        if not bandwidth:
            return None
        return Ceiling(
            bandwidth * 1e9 * n, flops * 1e12 * n if flops else None, memory * 1e9 * n if memory else None, n
        )

    @property
    def drafts(self) -> bool:
        """Whether a step may give several tokens: speculation is on."""
        stated = self.group.speculative_tokens
        if stated is not None:
            return stated > 0
        return any("specul" in name or "assistant" in name for name in self.knobs)
