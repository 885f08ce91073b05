"""The rules, one small function a cause: evidence in; a finding, nothing, or what to measure out."""

from __future__ import annotations

from collections.abc import Callable

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.rules import (
    adapters,
    admission,
    batching,
    chunks,
    data,
    decode,
    frontend,
    neighbours,
    prefill,
    prefix,
    queue,
    speculation,
    step_cost,
)
from phasetrace.model import Finding, NotEnoughData

Rule = Callable[[Evidence], Finding | NotEnoughData | None]

RULES: tuple[Rule, ...] = (
    adapters.lora,
    admission.grammar_compile,
    admission.overload,
    admission.token_budget,
    batching.small_batch,
    chunks.small_prefill_chunk,
    data.data_defect,
    decode.long_output,
    decode.many_sequences,
    decode.no_kv_cache,
    frontend.frontend,
    neighbours.preemption,
    neighbours.prefill_interference,
    prefill.long_prompt,
    prefill.padding,
    prefix.prefix_not_reused,
    prefill.warm_up,
    queue.kv_full,
    queue.slots_full,
    step_cost.bandwidth_bound,
    step_cost.launch_bound,
    step_cost.logits_processing,
    speculation.speculation_loss,
    step_cost.weight_offload,
)
