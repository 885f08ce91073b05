"""The rules for tables, one small function a cause: a view in; a candidate or nothing out."""

from __future__ import annotations

from phasetrace.advise.table.answer import Rule
from phasetrace.advise.table.rules import (
    extras,
    faults,
    load,
    placement,
    prefill,
    reading,
    step,
)

RULES: tuple[Rule, ...] = (
    prefill.warm_up,
    prefill.long_prompt,
    reading.prefix_not_reused,
    reading.small_prefill_chunk,
    reading.padding,
    load.long_output,
    step.bandwidth_bound,
    step.launch_bound,
    load.small_batch,
    placement.weight_offload,
    faults.no_kv_cache,
    faults.slow_kernel,
    extras.speculation_loss,
    extras.logits_processing,
    load.many_sequences,
    placement.interconnect,
    step.kv_growth,
)
