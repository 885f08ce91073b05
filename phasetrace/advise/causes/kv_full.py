"""No free KV blocks to admit the request."""

from __future__ import annotations

import math

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.knobs import BLOCKS, CAPS
from phasetrace.advise.queueing import Queue
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.queue import FULL, at_cap, evicts, memory_full, too_much, waits
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.waiting import SMALLER_KV, held_up, promised, scheduler_ns
from phasetrace.advise.words import percent
from phasetrace.model import Goal, Wait
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Make room in the KV cache: a larger memory share for it (gpu_memory_utilization), an 8-bit (fp8)"
        " KV cache, a smaller maximum length, quantised weights, or more devices or replicas."
    ),
    tradeoff="An 8-bit cache may cost quality; memory given to the cache is missing elsewhere.",
    commands={
        "vllm": (
            "--gpu-memory-utilization 0.95 --kv-cache-dtype fp8",
            "--max-model-len N  # what requests really need",
        ),
        "sglang": ("--mem-fraction-static 0.9 --kv-cache-dtype fp8_e5m2",),
        "tgi": ("--max-total-tokens N --cuda-memory-fraction 0.95",),
        "tensorrt-llm": ("kv_cache_config: {free_gpu_memory_fraction: 0.95, dtype: fp8}",),
        "llama.cpp": ("llama-server --ctx-size N --cache-type-k q8_0 --cache-type-v q8_0",),
    },
)
BY_HAND = "# leave out --num-gpu-blocks-override"
MEMORY = (
    "gpu_memory_utilization",
    "mem_fraction_static",
    "kv_cache_tokens",
    "num_gpu_blocks_override",
    "max_model_len",
    "max_total_tokens",
    "kv_cache_memory_gb",
)
CROWDED = 4.0  # times those that run, or may: twice the memory would not take in half of those who wait


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """By the scheduler, most of the waiting is for KV blocks."""
    queue, held = scheduler_ns(evidence), held_up(evidence, Wait.KV)
    if not isinstance(held, Queue):
        return held
    blocks, override = evidence.knob(*BLOCKS), evidence.knob("num_gpu_blocks_override")
    cap = evidence.knob(*CAPS)
    raised = SMALLER_KV * held.running if override is None else max(held.most_open, SMALLER_KV * held.running)
    raised = min(raised, cap) if cap else raised
    return Seen(
        queue * held.share(Wait.KV),
        evidence=(
            f"{percent(queue / evidence.whole_ns)} of {evidence.whole} is spent in the queue:"
            f" {percent(held.share(Wait.KV))} of that for want of KV blocks",
            f"{held.running:.3g} sequences ran meanwhile on average"
            + (f", where {cap:,.0f} may" if cap else ""),
            f"at most {held.most_blocks:,} of {blocks:,.0f} blocks were in use"
            if blocks and held.most_blocks
            else None,
        ),
        fix=f"Let the KV cache be larger: {override:,.0f} blocks are set by hand (num_gpu_blocks_override)."
        if override is not None
        else "",
        commands={"vllm": (*((BY_HAND,) if override is not None else ()), *more_memory(evidence))},
        prediction=promised(evidence, held, Wait.KV, raised),
    )


def more_memory(evidence: Evidence) -> tuple[str, ...]:
    """What gives vLLM more KV cache, on this device."""
    if evidence.model is not None and evidence.model.device == "cpu":
        return ("VLLM_CPU_KVCACHE_SPACE=8  # GiB, in the server's environment",)
    return ("--gpu-memory-utilization 0.95 --kv-cache-dtype fp8",)


def in_table(view: View) -> Told | None:
    """The user gave it more memory, or the KV cache is full, as the engine says or by what fits."""
    s, g = view.subject, view.subject.group
    queue = waits(view, s)
    if view.goal is Goal.TPOT or evicts(s):
        return None
    pair = view.contrast(*MEMORY)
    if pair is not None and (memory_full(pair.worse) or memory_full(pair.worse) is None):
        return tried(view, pair, "less room for the KV cache")
    used_up = g.kv_cache_usage is not None and g.kv_cache_usage >= FULL
    if not (memory_full(s) and (queue or used_up)) or (at_cap(s) and not used_up):
        return None
    said = [
        f"{percent(g.kv_cache_usage)} of the KV cache is used"
        if g.kv_cache_usage is not None
        else "the requests that are open need more KV cache than there is"
    ]
    said += [queue.said] if queue else []
    if s.cap and g.running:
        said.append(f"{g.running:,.0f} run where {s.cap:,.0f} may: slots are not what is missing")
    return Told(
        Tier.BOUND if at_cap(s) and too_much(s) else Tier.FAULT,  # slots are used up, too
        tuple(said),
        gain=without(queue.seconds, s.metric(view.goal))
        if queue and view.goal is not Goal.THROUGHPUT
        else None,
        weight=max(queue.share if queue else 0.3, 0.3),
        seconds=queue.seconds if queue else None,
        confidence="high" if used_up and queue and not (at_cap(s) or _crowded(s)) else "medium",
    )


def _crowded(s: Setting) -> bool:
    """So many wait that memory for twice as many would not take them in."""
    return (s.group.waiting or 0) > CROWDED * (s.group.running or s.cap or math.inf)


RULE = Rule(Cause.KV_FULL, WORDS, in_steps, in_table)
