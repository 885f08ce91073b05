"""One group of a table with what holds for the whole table, and how its times stand against the device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from phasetrace.advise.table.timed import Timed
from phasetrace.analyze import expected, physics
from phasetrace.analyze.machine import SLOWEST_BANDWIDTH
from phasetrace.analyze.physics import Shape
from phasetrace.analyze.shapes import mixture_of_experts

CRAWLING = 3.0  # times the time that the slowest GPU needs to read the weights


@dataclass(frozen=True)
class Setting(Timed):
    """A group: its load, its times, and how they stand against the device. None is unknown."""

    @cached_property
    def shape(self) -> Shape | None:
        """The model's; with 16-bit weights where nothing else is said and no number speaks against it."""
        assumed = self.served_shape
        if self.stated_shape or assumed is None or self.ceiling is None:
            return self.stated_shape
        too_large = self.ceiling.memory is not None and assumed.weight_bytes > self.ceiling.memory
        too_fast = self.step is not None and self.step < physics.touched_weight_bytes(assumed, 1) / (
            self.ceiling.bandwidth
        )
        return None if too_large or too_fast else assumed

    @property
    def activity_known(self) -> bool:
        """Whether it is known how many parameters a token uses."""
        return self.shape is not None and (
            self.shape.active_parameters is not None or not mixture_of_experts(self.table.model.name)
        )

    @property
    def assumed(self) -> bool:
        """Whether the bytes of a weight are an assumption."""
        return self.stated_shape is None and self.shape is not None

    @cached_property
    def step_floor(self) -> float | None:
        """Seconds that a decode step takes at least."""
        if self.shape is None or self.ceiling is None:
            return None
        return physics.decode_floor_s(self.shape, self.ceiling, self.width or 1, self.context)

    @cached_property
    def step_expected(self) -> float | None:
        """Seconds that a decode step of a well set-up engine takes."""
        return self.step_with()

    def step_with(self, shape: Shape | None = None, batch: float | None = None) -> float | None:
        """The same with another shape of weights or another batch."""
        shape = shape or self.shape
        if shape is None or self.ceiling is None or not self.activity_known:
            return None
        width = batch or self.width or 1
        return expected.decode_step_s(shape, self.ceiling, width, self.context, self.table.hardware.name)

    @cached_property
    def step(self) -> float | None:
        """Seconds of one decode step: speculation gives several tokens in one."""
        if self.tpot is None or (self.drafts and self.group.accepted_length is None):
            return None
        return self.tpot * max(1.0, self.group.accepted_length or 1.0)

    @cached_property
    def slower(self) -> float | None:
        """How many times slower a decode step is than a well set-up engine's; near 1 is at the bound."""
        if self.step is None or not self.step_expected:
            return None
        return self.step / self.step_expected

    @cached_property
    def crawls(self) -> bool:
        """Whether a step takes longer than on the slowest GPU there is: then its rate is nobody's bound."""
        if (
            self.step is None
            or self.shape is None
            or not self.activity_known
            or self.table.hardware.kind == "cpu"
        ):
            return False
        return self.step > CRAWLING * self.shape.weight_bytes / SLOWEST_BANDWIDTH["cuda"]

    @cached_property
    def kv_part(self) -> float | None:
        """Of what a decode step reads, the part that is KV cache."""
        if self.shape is None or not self.context:
            return None
        return physics.kv_share(self.shape, self.width or 1, self.context)

    def prefill_with(self, new_tokens: float, chunk: float | None = None) -> float | None:
        """Seconds that reading so many new tokens takes a well set-up engine."""
        if self.shape is None or self.ceiling is None or not self.activity_known:
            return None
        whole = max(self.group.prompt_tokens or 0, new_tokens)
        return expected.prefill_s(
            self.shape, self.ceiling, new_tokens, whole, chunk, self.table.hardware.name
        )

    @cached_property
    def fit(self) -> float | None:
        """Sequences whose KV fits beside the weights."""
        if self.shape is None or self.ceiling is None:
            return None
        tokens = (self.group.prompt_tokens or 0) + (self.group.output_tokens or self.group.max_tokens or 0)
        return physics.sequences_that_fit(self.shape, self.ceiling, tokens) if tokens else None
