"""The rules for tables, one small function a cause: a view in; a candidate or nothing out."""

from __future__ import annotations

from phasetrace.advise.table.answer import Rule
from phasetrace.advise.table.rules import client, extras, faults, host, load, prefill, queue, step

RULES: tuple[Rule, ...] = (
    client.client_gate,
    client.client_buffered_stream,
    client.frontend,
    queue.slots_full,
    queue.kv_full,
    queue.overload,
    queue.token_budget,
    queue.grammar_compile,
    prefill.warm_up,
    prefill.long_prompt,
    prefill.prefix_not_reused,
    prefill.small_prefill_chunk,
    prefill.padding,
    load.long_output,
    step.bandwidth_bound,
    step.launch_bound,
    load.small_batch,
    load.prefill_interference,
    load.preemption,
    faults.weight_offload,
    faults.no_kv_cache,
    faults.slow_kernel,
    extras.speculation_loss,
    extras.logits_processing,
    extras.lora,
    load.many_sequences,
    faults.interconnect,
    step.kv_growth,
    host.host_gap,
    host.gc_pause,
    host.cpu_starved,
    host.stream_consumer,
)
