"""One group of a table, made of requests that were recorded."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from phasetrace.analyze.host_use import HostUse, host_use
from phasetrace.analyze.metrics import busy_ns, percentiles, throughput_tok_s
from phasetrace.analyze.step_load import StepLoad, step_load
from phasetrace.analyze.step_table import StepTable
from phasetrace.analyze.token_gaps import token_gaps
from phasetrace.analyze.tokens import decode_steps, padding_tokens
from phasetrace.model import (
    Breakdown,
    Group,
    Part,
    Percentiles,
    Phase,
    Process,
    Request,
    RequestBreakdown,
    StallCause,
)

Fields = dict[str, Any]  # of a group

S = 1e9  # nanoseconds
# Of decode: less of it is what any server that admits requests pays, and is not told
INTERFERES = 0.05
NEIGHBOURS = (StallCause.OTHERS_PREFILL, StallCause.PREEMPTION)  # stalls that have a field of their own
CAPS = ("max_tokens", "max_new_tokens")
COPIES = ("n", "num_return_sequences", "num_beams")
DRAFTS = ("num_speculative_tokens", "num_assistant_tokens", "prompt_lookup_num_tokens")


def group_of(
    breakdown: Breakdown,
    requests: Sequence[RequestBreakdown],
    steps: StepTable,
    process: Process | None,
    order: str | None,
) -> Group:
    """All that the requests and their steps say, in a table's units."""
    if not requests:
        return Group(requests=len(breakdown.failed) or None)
    load = StepLoad() if order == "first" else step_load(breakdown, requests, steps)
    if requests is breakdown.requests:
        found, longest = breakdown.metrics, breakdown.longest_gap_ns
    else:
        gaps = token_gaps([r.request for r in requests], steps)
        found, longest = percentiles(requests, gaps), gaps.longest_ns
    used = host_use(breakdown.recording, (r.request for r in requests))
    facts = process.facts if process is not None else {}
    stall = next((p for p in breakdown.stall_patterns if p.period_ns and p.cause not in NEIGHBOURS), None)
    failed = len(breakdown.failed) if order != "first" else 0
    return Group(
        label="warm-up" if order == "first" else None,
        requests=len(requests) + failed,
        succeeded=len(requests),
        order=order,
        cpu_cores=_number(facts.get("cores")),
        cpu_utilization=_of_cores(used, _number(facts.get("cores"))),
        gpu_utilization=used.device_busy if used is not None else None,
        threads=_number(facts.get("threads")),
        stall_s=stall.typical_ns / S if stall else None,
        stall_period_s=stall.period_ns / S if stall and stall.period_ns else None,
        throughput_tok_s=throughput_tok_s(requests),
        accepted_length=_accepted_length(requests, steps),
        itl_max_s=longest / S if longest is not None and order != "first" else None,
        **_arrivals([r.request for r in requests]),
        **_tokens(requests),
        **_times(requests, found),
        **_asked([r.request for r in requests], facts),
        **_load(load, requests),
    )


def _of_cores(used: HostUse | None, cores: float | None) -> float | None:
    if used is None or not cores:
        return None
    return min(1.0, used.cpu_ns / (used.wall_ns * cores))


def _arrivals(requests: Sequence[Request]) -> Fields:
    busy = busy_ns(requests)
    lives = sum((r.finished_ns or r.arrival_ns) - r.arrival_ns for r in requests)
    first, last = min(r.arrival_ns for r in requests), max(r.arrival_ns for r in requests)
    return {
        "concurrency": lives / busy if busy else None,
        "request_rate": (len(requests) - 1) * S / (last - first) if last > first else None,
        "request_throughput": len(requests) * S / busy if busy else None,
    }


def _tokens(requests: Sequence[RequestBreakdown]) -> Fields:
    """Of a sequence, but for what a request shares; a prompt of several copies counts once for each."""
    rows = [s for r in requests for s in r.request.sequences]
    each = [max(1, len(r.request.sequences)) for r in requests]
    padded = [padding_tokens(r.request) for r in requests]
    shared = [
        (r.repeated_prompt_tokens + (r.request.cached_tokens or 0)) / n
        for r, n in zip(requests, each, strict=True)
        if r.repeated_prompt_tokens is not None
    ]
    prompt = _mean(s.prompt_tokens for s in rows)
    cached = [
        r.request.cached_tokens / n
        for r, n in zip(requests, each, strict=True)
        if r.request.cached_tokens is not None
    ]
    known = [
        (r.request.cached_tokens, r.request.prompt_tokens)
        for r in requests
        if r.request.cached_tokens is not None and r.request.prompt_tokens
    ]
    return {
        "prompt_tokens": prompt,
        "cached_tokens": _mean(cached),
        "shared_prefix_tokens": _mean(shared),
        "padded_prompt_tokens": prompt + sum(padded) / len(rows) if prompt and sum(padded) else None,
        "output_tokens": _mean(r.request.longest_output for r in requests),
        "prefix_cache_hit_rate": sum(c for c, _ in known) / sum(p for _, p in known) if known else None,
    }


def _times(requests: Sequence[RequestBreakdown], found: Mapping[str, Percentiles]) -> Fields:
    def phase(which: Phase) -> float | None:
        known = any(p.phase is which for r in requests for p in r.phases)
        return statistics.fmean(r.phase_ns(which) for r in requests) / S if known else None

    queue = [r.phase_ns(Phase.QUEUE) for r in requests]
    tail = {
        f"{metric}_{name}_s": getattr(found[f"{metric}_ns"], name) / S
        for metric in ("ttft", "e2e")
        if f"{metric}_ns" in found
        for name in ("p95", "p99")
    }
    itl = found.get("itl_ns")
    return tail | {
        "client_wait_s": phase(Phase.CLIENT),
        "frontend_s": phase(Phase.FRONTEND),
        "queue_s": phase(Phase.QUEUE),
        "prefill_s": phase(Phase.PREFILL),
        "decode_s": phase(Phase.DECODE),
        "post_engine_s": phase(Phase.DELIVERY),
        "tokenize_s": _seconds(r.request.tokenize_ns for r in requests),
        "grammar_compile_s": _seconds(r.request.grammar_ns for r in requests),
        "ttft_s": _seconds(r.ttft_ns for r in requests),
        "tpot_s": _seconds(r.tpot_ns for r in requests),
        "e2e_s": _seconds(r.e2e_ns for r in requests),
        "queue_p95_s": float(np.percentile(queue, 95)) / S if any(queue) else None,
        "itl_p50_s": itl.p50 / S if itl else None,
        "itl_p95_s": itl.p95 / S if itl else None,
        "itl_p99_s": itl.p99 / S if itl else None,
    }


def _asked(requests: Sequence[Request], facts: Mapping[str, object]) -> Fields:
    """What the requests were set to: the typical one's."""

    def first(names: Iterable[str], within: Mapping[str, object]) -> float | None:
        return next((n for name in names if (n := _number(within.get(name))) is not None), None)

    def typical(read: Callable[[Mapping[str, object]], float | None]) -> float | None:
        known = [value for r in requests if (value := read(r.settings)) is not None]
        return float(statistics.median(known)) if 2 * len(known) >= len(requests) and known else None

    def most(*names: str) -> bool:
        return 2 * sum(any(r.settings.get(n) for n in names) for r in requests) >= len(requests)

    batch = statistics.median(max(1, len(r.sequences)) for r in requests)
    copies = typical(lambda settings: first(COPIES, settings)) or 1.0
    lora = sum(bool(r.settings.get("lora")) for r in requests)
    static = all(r.engine == "transformers" and r.mode != "continuous" for r in requests)
    return {
        "max_tokens": typical(lambda settings: first(CAPS, settings)),
        "batch": float(batch) if static else None,
        "sequences_per_request": copies,
        "streaming": _streaming(requests),
        "grammar": True if most("structured") else None,
        "logprobs": typical(lambda settings: first(("logprobs",), settings)),
        "repetition_penalty": typical(lambda settings: first(("repetition_penalty",), settings)),
        "lora_adapters": 1.0 if lora else None,
        "speculative_tokens": first(DRAFTS, facts) or typical(lambda settings: first(DRAFTS, settings)),
    }


def _streaming(requests: Sequence[Request]) -> bool | None:
    """Whether most were handed tokens before the last one was written."""
    if 2 * sum(bool(r.settings.get("streamer")) for r in requests) >= len(requests):
        return True
    told = [
        r.first_output_ns < r.last_token_ns
        for r in requests
        if r.first_output_ns is not None and r.last_token_ns is not None and (r.longest_output or 0) > 1
    ]
    return 2 * sum(told) >= len(told) if told else None


def _load(load: StepLoad, requests: Sequence[RequestBreakdown]) -> Fields:
    decode = sum(r.phase_ns(Phase.DECODE) for r in requests)
    stretched = sum(r.part_ns(Phase.DECODE, Part.OTHERS_PREFILL) for r in requests)
    interferes = decode > 0 and stretched >= INTERFERES * decode
    return {
        "running": load.running,
        "waiting": load.waiting,
        "kv_cache_usage": load.kv_cache_usage,
        "preemptions": load.preemptions,
        "recomputed_token_share": load.recomputed_token_share,
        "host_gap_s": load.host_gap_s,
        "sampling_s": load.part_s(Part.LOGITS, Part.SAMPLING),
        "draft_s": load.part_s(Part.DRAFT),
        "stream_s": load.part_s(Part.STREAM),
        "prefilling_concurrently": load.others_prompt_tokens if interferes else None,
    }


def _accepted_length(requests: Sequence[RequestBreakdown], steps: StepTable) -> float | None:
    """Tokens that a decode step gave a sequence, where steps gave several."""
    counted = [(r.request.longest_output, decode_steps(r.request, steps)) for r in requests]
    known = [(tokens - 1, n) for tokens, n in counted if tokens and n]
    given, made = sum(t for t, _ in known), sum(n for _, n in known)
    several = any(count.tokens > 1 for r in requests for count in r.request.yields)
    return given / made if made and several else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _seconds(values: Iterable[float | None]) -> float | None:
    mean = _mean(values)
    return mean / S if mean is not None else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
