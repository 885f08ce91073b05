"""A group of a table: its load and its times, and what follows from them by arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from phasetrace.advise.table.stated import Stated
from phasetrace.model import Goal

MANY_TOKENS = 32  # of output: prefill of a usual prompt takes no longer than a few of them
ALONE = 1.5  # requests open: whole numbers, so anything below two is one


@dataclass(frozen=True)
class Timed(Stated):
    """A group: its load and its times. None is unknown."""

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
