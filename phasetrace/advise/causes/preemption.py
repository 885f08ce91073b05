"""Requests are evicted and recomputed."""

from __future__ import annotations

from phasetrace.advise.causes.kv_full import BY_HAND, more_memory
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.queue import evicts
from phasetrace.advise.table.told import Told, measured, modelled
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Part, Phase
from phasetrace.semconv import Cause

FEWER_SLOTS = "--max-num-seqs N  # below what preempts"
WORDS = Words(
    fix=(
        "Stop evicting: fewer concurrent sequences (max_num_seqs), more memory for the KV cache"
        " (gpu_memory_utilization, fp8 KV cache, more devices), or shorter maximum lengths."
    ),
    tradeoff="Fewer slots let requests wait in the queue instead, where nothing is lost.",
    commands={
        "vllm": (FEWER_SLOTS, "--gpu-memory-utilization 0.95 --kv-cache-dtype fp8"),
        "sglang": ("--schedule-conservativeness 1.3 --mem-fraction-static 0.9",),
    },
)
EVICTED = 0.03  # of the goal's time: evictions are rare events that cost a wait and a reading each


def in_steps(evidence: Evidence) -> Seen | None:
    """Evictions were recorded, and what they cost: the time away, and computing again."""
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
    by_hand = evidence.knob("num_gpu_blocks_override") is not None
    return Seen(
        cost,
        evidence=(
            f"{count(times_evicted, 'preemption')} of {count(len(evicted), 'request')} (of"
            f" {len(evidence.requests):,}) cost {seconds(cost)}, {percent(evidence.share(cost))} of all time",
            f"{seconds(away)} away from the batch, {seconds(again)} computing"
            + (f" {redone:,} tokens again" if redone else " again"),
        ),
        fix=f"{WORDS.fix} Leave out num_gpu_blocks_override, too." if by_hand else "",
        commands={"vllm": (*((BY_HAND,) if by_hand else ()), *more_memory(evidence), FEWER_SLOTS)},
        prediction=predict(evidence, Saving(first_ns=early, decode_ns=cost - early, least=0.4, most=1.1)),
    )


def in_table(view: View) -> Told | None:
    """Evictions are counted, or tokens that were computed again; more than a cache that is full makes."""
    s = max(view.settings, key=lambda x: (x.group.recomputed_token_share or 0, x.group.preemptions or 0))
    g = s.group
    redone, evicted = g.recomputed_token_share or 0.0, g.preemptions or 0.0
    if not evicts(s):
        return None
    said = []
    if evicted:
        said.append(
            f"{count(evicted, 'preemption')}" + (f" over {g.requests:,.0f} requests" if g.requests else "")
        )
    if redone:
        said.append(f"{percent(redone)} of the tokens were computed again")
    if g.kv_cache_usage is not None:
        said.append(f"{percent(g.kv_cache_usage)} of the KV cache is used")
    pair = next((p for p in view.pairs if p.worse is s and not p.better.group.preemptions), None)
    ratio = pair.ratio if pair is not None else 1 / (1 - min(0.9, redone)) if redone else None
    return Told(
        Tier.MEASURED if redone >= 0.15 or evicted >= 0.2 * (g.requests or 1e9) else Tier.FAULT,
        tuple(said),
        gain=(measured(ratio) if pair else modelled(ratio, 0.5)) if ratio else None,
        setting=s,
        goal=pair.goal if pair else None,
        weight=max(redone, 0.3 if evicted else 0.0),
        confidence="high" if said[1:] else "medium",
    )


RULE = Rule(Cause.PREEMPTION, WORDS, in_steps, in_table)
