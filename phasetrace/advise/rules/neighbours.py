"""What others that are served at the same time cost: their prompts, and the KV blocks they take."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.model import Finding, Goal, NotEnoughData, Part, Phase, StallCause
from phasetrace.semconv import Cause

SHARE = 0.1  # of decode: with less, taking all of it away wins less than what matters
NEIGHBOURS = 1.5  # requests at once: with fewer, no other's prompt can stretch a step
SMALLER = 0.25  # of the budget: two halvings, a usual next try
LEAST_BUDGET = 128  # tokens: below, a chunk costs a whole reading of the weights on most devices
ELSEWHERE = 0.6  # of the cost is won where prompts are read by other devices: KV has to come over
EVICTED = 0.03  # of the goal's time: evictions are rare events that cost a wait and a reading each


def prefill_interference(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Steps that decode are stretched by the prompts of others that they read."""
    decode = evidence.phase_ns(Phase.DECODE)
    cost = evidence.part_ns(Part.OTHERS_PREFILL, Phase.DECODE)
    if evidence.goal is Goal.TTFT or not decode:
        return None
    if not evidence.stepped and evidence.load is not None and evidence.load.concurrency >= NEIGHBOURS:
        return NotEnoughData(Cause.PREFILL_INTERFERENCE, "the engine's steps, and whose prompts they read")
    if cost < SHARE * decode:
        return None
    b = evidence.breakdown
    by_prefill = [s for s in b.stalls if s.cause is StallCause.OTHERS_PREFILL]
    costly: dict[str, int] = {}
    for paid in b.interference:
        costly[paid.by] = costly.get(paid.by, 0) + paid.ns
    worst = sorted(costly, key=lambda name: -costly[name])[: max(1, len(costly) // 10)]
    lengths = {r.request.id: r.new_prompt_tokens for r in evidence.requests}
    prompts = [n for name in worst if (n := lengths.get(name))]
    itl = b.metrics.get("itl_ns")
    budget = evidence.knob(*BUDGETS)
    smaller = max(LEAST_BUDGET, int((budget or 2048) * SMALLER))
    return Finding(
        cause=Cause.PREFILL_INTERFERENCE,
        phase=Phase.DECODE,
        ns=cost,
        share=evidence.share(cost),
        confidence="high",
        evidence=(
            f"{percent(cost / decode)} of decode goes into others' prompts in its steps: {seconds(cost)}",
            *(
                (
                    f"{count(len(worst), 'request')} of {len(costly):,} cost"
                    f" {percent(sum(costly[n] for n in worst) / sum(costly.values()))} of that"
                    + (f", with {statistics.median(prompts):,.0f} prompt tokens each" if prompts else ""),
                )
                if costly
                else ()
            ),
            *(
                (
                    f"p99 of ITL is {times(itl.p99 / itl.p50)} its middle"
                    f" ({seconds(itl.p99)} and {seconds(itl.p50)})",
                )
                if itl is not None and itl.p50
                else ()
            ),
            *((f"{count(len(by_prefill), 'stall')} fell on such a step",) if by_prefill else ()),
        ),
        recommendation=(
            "Keep others' prefill out of the steps that decode: a smaller prefill chunk (the token budget of"
            " a step) shortens the gaps; to win the time itself, let prefill run on other devices"
            " (disaggregate), or reuse what prompts share."
        ),
        commands=(
            f"--max-num-batched-tokens {smaller}  # or --long-prefill-token-threshold {smaller}",
            "--kv-transfer-config ...  # prefill on other instances",
        )
        if evidence.engine == "vllm"
        else evidence.typed(Cause.PREFILL_INTERFERENCE),
        tradeoff="A smaller budget makes TTFT of long prompts and throughput worse.",
        # Prompts that are read elsewhere cost decode nothing but their KV's way; with smaller chunks gaps
        # are shorter and more.
        prediction=predict(evidence, Saving(decode_ns=cost * ELSEWHERE, least=0.3, most=1 / ELSEWHERE)),
    )


def preemption(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Requests are evicted for want of KV blocks, wait, and are computed again."""
    evicted = [r for r in evidence.requests if r.request.preemptions]
    away = evidence.phase_ns(Phase.PREEMPTED)
    again = evidence.part_ns(Part.RECOMPUTE, Phase.DECODE, Phase.PREFILL, Phase.PREEMPTED)
    cost = away + again
    if not evicted or not evidence.total_ns or cost < EVICTED * evidence.total_ns:
        return None
    times_evicted = sum(len(r.request.preemptions) for r in evicted)
    redone = sum(chunk.tokens for r in evicted for chunk in r.request.recomputed)
    early = sum(
        max(0, min(i.end_ns, r.request.first_token_ns or i.end_ns) - i.begin_ns)
        for r in evicted
        for i in r.request.preemptions
    )
    early = min(early, away)
    on_cpu = evidence.model is not None and evidence.model.device == "cpu"
    override = evidence.knob("num_gpu_blocks_override")
    return Finding(
        cause=Cause.PREEMPTION,
        phase=Phase.DECODE,
        ns=cost,
        share=evidence.share(cost),
        confidence="high",
        evidence=(
            f"{count(times_evicted, 'preemption')} of {count(len(evicted), 'request')} (of"
            f" {len(evidence.requests):,}) cost {seconds(cost)}, {percent(evidence.share(cost))} of all time",
            f"{seconds(away)} away from the batch, {seconds(again)} computing"
            + (f" {redone:,} tokens again" if redone else " again"),
        ),
        recommendation=(
            "Stop evicting: more KV cache (gpu_memory_utilization, an fp8 cache"
            + (", no num_gpu_blocks_override" if override is not None else "")
            + "), fewer concurrent sequences (max_num_seqs), or shorter maximum lengths."
        ),
        commands=(
            *(("# leave out --num-gpu-blocks-override",) if override is not None else ()),
            "VLLM_CPU_KVCACHE_SPACE=8  # GiB, in the server's environment"
            if on_cpu
            else "--gpu-memory-utilization 0.95 --kv-cache-dtype fp8",
            "--max-num-seqs N  # below what preempts",
        )
        if evidence.engine == "vllm"
        else evidence.typed(Cause.PREEMPTION),
        tradeoff="Fewer slots let requests wait in the queue instead, where nothing is lost.",
        prediction=predict(evidence, Saving(first_ns=early, decode_ns=cost - early, least=0.4, most=1.1)),
    )
