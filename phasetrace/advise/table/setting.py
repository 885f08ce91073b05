"""One group of a table with what holds for the whole table, and what follows from it by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from phasetrace.advise.table.stated import Stated
from phasetrace.analyze import expected, physics
from phasetrace.analyze.machine import SLOWEST_BANDWIDTH
from phasetrace.analyze.physics import Shape
from phasetrace.analyze.shapes import mixture_of_experts
from phasetrace.model import Goal

CRAWLING = 3.0  # times the time that the slowest GPU needs to read the weights
MANY_TOKENS = 32  # of output: prefill of a usual prompt takes no longer than a few of them
ALONE = 1.5  # requests open: whole numbers, so anything below two is one


@dataclass(frozen=True)
class Setting(Stated):
    """A group: its load, its times, and how they stand against the device. None is unknown."""

    # ---- load ----

    @cached_property
    def width(self) -> float | None:
        """Sequences that share a decode step, as far as the numbers tell."""
        g = self.group
        if g.batch is not None:
            return g.batch
        if g.running is not None:
            return g.running
        known = [v for v in (g.concurrency, self.cap if g.concurrency else None) if v is not None]
        return min(known) if known else None

    @property
    def alone(self) -> bool:
        """Whether one request at a time was open, so that no other can have slowed it."""
        loads = (self.group.concurrency, self.group.running, self.group.batch)
        known = [v for v in loads if v is not None]
        return bool(known) and max(known) < ALONE

    @property
    def together(self) -> float:
        """Prompts that are read at once: those of a static batch, which no server's load is told of."""
        g = self.group
        served = g.concurrency is not None or g.running is not None or self.cap is not None
        return 1.0 if served else max(1.0, g.batch or 1.0)

    @property
    def new_tokens(self) -> float | None:
        """Prompt tokens that prefill had to compute, padding included."""
        g = self.group
        prompt = g.padded_prompt_tokens or g.prompt_tokens
        if prompt is None:
            return None
        if g.cached_tokens is not None:
            return max(0.0, prompt - g.cached_tokens)
        if g.prefix_cache_hit_rate is not None:
            return prompt * (1 - min(1.0, max(0.0, g.prefix_cache_hit_rate)))
        return prompt

    @property
    def context(self) -> float:
        """Tokens in the KV cache of a sequence, half way through its output."""
        return (self.group.prompt_tokens or 0) + (self.group.output_tokens or 0) / 2

    # ---- times ----

    @cached_property
    def tpot(self) -> float | None:
        """Seconds a token, measured, else what other times leave for it."""
        g = self.group
        if g.tpot_s is not None:
            return g.tpot_s
        if g.decode_s is not None and g.output_tokens and g.output_tokens > 1:
            return g.decode_s / (g.output_tokens - 1)
        if g.itl_p50_s is not None:
            return g.itl_p50_s
        if g.e2e_s is not None and g.ttft_s is not None and g.output_tokens and g.output_tokens > 1:
            return max(0.0, g.e2e_s - g.ttft_s) / (g.output_tokens - 1)
        if self._mostly_decode and g.e2e_s and g.output_tokens:
            return g.e2e_s / g.output_tokens
        if g.throughput_tok_s and self.width is not None:
            return self.width / g.throughput_tok_s
        return None

    @property
    def _mostly_decode(self) -> bool:
        """Whether a whole request's time, over its tokens, is about the time of a token."""
        g = self.group
        if g.prefill_s is not None or g.queue_s is not None or not (self.alone or g.batch is not None):
            return False
        return (g.output_tokens or 0) >= MANY_TOKENS and (g.prompt_tokens or 0) <= 4 * (g.output_tokens or 0)

    @cached_property
    def decode(self) -> float | None:
        """Seconds from first to last token."""
        g = self.group
        if g.decode_s is not None:
            return g.decode_s
        if g.tpot_s is not None and g.output_tokens:
            return g.tpot_s * max(0.0, g.output_tokens - 1)
        if g.e2e_s is not None and g.ttft_s is not None:
            return max(0.0, g.e2e_s - g.ttft_s)
        return None

    @cached_property
    def prefill(self) -> float | None:
        """Seconds from first scheduled to first token; of a lone request, TTFT less what else is known."""
        g = self.group
        if g.prefill_s is not None:
            return g.prefill_s
        if g.ttft_s is None or not (self.alone or g.queue_s is not None):
            return None
        return max(
            0.0, g.ttft_s - (g.queue_s or 0) - (g.frontend_s or g.tokenize_s or 0) - (g.client_wait_s or 0)
        )

    @cached_property
    def before_queue(self) -> float | None:
        """Seconds in client and frontend that are stated, or that TTFT holds beside queue and prefill."""
        g = self.group
        if g.frontend_s is not None or g.tokenize_s is not None:
            return g.frontend_s if g.frontend_s is not None else g.tokenize_s
        if g.ttft_s is not None and g.queue_s is not None and g.prefill_s is not None:
            return max(0.0, g.ttft_s - g.queue_s - g.prefill_s)
        return None

    @cached_property
    def ttft(self) -> float | None:
        """Seconds to the first token."""
        g = self.group
        if g.ttft_s is not None:
            return g.ttft_s
        if g.queue_s is None and g.prefill_s is None and g.client_ttft_s is not None:
            return g.client_ttft_s
        parts = [
            v
            for v in (g.client_wait_s, g.frontend_s or g.tokenize_s, g.queue_s, g.prefill_s)
            if v is not None
        ]
        return sum(parts) if parts else g.ttft_p95_s or g.ttft_p99_s

    @cached_property
    def e2e(self) -> float | None:
        """Seconds of a whole request."""
        g = self.group
        if g.e2e_s is not None:
            return g.e2e_s
        if self.ttft is not None and self.decode is not None:
            return self.ttft + self.decode
        return g.client_e2e_s or g.e2e_p95_s or g.e2e_p99_s

    @cached_property
    def throughput(self) -> float | None:
        """Tokens a second (requests a second where only they were counted)."""
        g = self.group
        if g.throughput_tok_s is not None:
            return g.throughput_tok_s
        if g.request_throughput is not None:
            return g.request_throughput * (g.output_tokens or 1)
        if g.tpot_s and self.width is not None:
            return self.width / g.tpot_s
        return None

    def metric(self, goal: Goal) -> float | None:
        """The goal's metric of this group."""
        return {
            Goal.TTFT: self.ttft,
            Goal.TPOT: self.tpot,
            Goal.E2E: self.e2e,
            Goal.THROUGHPUT: self.throughput,
        }[goal]

    # ---- against the device ----

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
