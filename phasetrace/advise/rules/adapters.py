"""LoRA adapters that are not merged: waits for a place among those loaded, and slower steps."""

from __future__ import annotations

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.rules.queue import MOSTLY, SHARE
from phasetrace.advise.waiting import scheduler_ns
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.model import Finding, Goal, NotEnoughData, Phase, Steps, Wait
from phasetrace.semconv import Cause

FEWEST = 8  # steps of a kind: the median of fewer is chance
ALIKE = 0.25  # of the sequences, more or fewer: steps that may be compared
SLOWER = 1.15  # times a step without adapters: with less, merging is not worth it


def lora(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Requests wait for their adapter, or steps with adapters take clearly longer than those without."""
    adapted = [r for r in evidence.requests if r.request.settings.get("lora")]
    if not adapted:
        return None
    held, queue = evidence.queue, evidence.phase_ns(Phase.QUEUE)
    if held is not None and held.share(Wait.LORA) >= MOSTLY and queue >= SHARE * evidence.whole_ns:
        return _waiting(evidence, scheduler_ns(evidence) * held.share(Wait.LORA))
    decode = sum(r.phase_ns(Phase.DECODE) for r in adapted)
    compared = _with_and_without(evidence.breakdown.recording.steps)
    if evidence.goal is Goal.TTFT or not decode:
        return None
    if compared is None:
        return NotEnoughData(Cause.LORA, "the same load without adapters, to see what they cost a step")
    with_s, without = compared
    if with_s < SLOWER * without:
        return None
    saved = decode * (1 - without / with_s)
    return Finding(
        cause=Cause.LORA,
        phase=Phase.DECODE,
        ns=int(saved),
        share=evidence.share(saved),
        confidence="high",
        evidence=(
            f"a step with adapters takes {seconds(with_s)}, one of as many sequences without"
            f" {seconds(without)}: {times(with_s / without)}",
            f"{count(len(adapted), 'request')} of {len(evidence.requests):,} use one",
        ),
        recommendation=(
            "Merge the adapter into the weights where there is only one, else use the smallest max_lora_rank"
            " that fits, and newer adapter kernels."
        ),
        commands=evidence.typed(Cause.LORA),
        tradeoff="A merged model serves this one adapter only.",
        prediction=predict(evidence, Saving(decode_ns=saved, least=0.7, most=1.1)),
    )


def _waiting(evidence: Evidence, waited: float) -> Finding:
    most = evidence.knob("max_loras")
    return Finding(
        cause=Cause.LORA,
        phase=Phase.DECODE,
        ns=int(waited),
        share=evidence.share(waited),
        confidence="high",
        evidence=(
            f"{percent(waited / evidence.whole_ns)} of what counts is spent waiting for a place among the"
            " adapters of a step",
            *((f"{most:,.0f} may be in one step (max_loras)",) if most else ()),
        ),
        recommendation="Let more adapters into a step (max_loras), or merge those that are used most.",
        commands=(f"--max-loras {int((most or 1) * 2)}",)
        if evidence.engine == "vllm"
        else evidence.typed(Cause.LORA),
        tradeoff="Each adapter in a step takes memory and makes the step longer.",
        prediction=predict(evidence, Saving(first_ns=waited, least=0.4, most=1.0)),
    )


def _with_and_without(chunks: tuple[Steps, ...]) -> tuple[float, float] | None:
    """Median length of decode steps with adapters, and of those without that hold as many sequences."""
    rows = [
        np.stack([s.end_ns - s.begin_ns, s.running, s.computed_tokens, s.adapters], axis=1)
        for s in chunks
        if s.running is not None and s.computed_tokens is not None and s.adapters is not None
    ]
    if not rows:
        return None
    length, running, computed, adapters = np.concatenate(rows).T
    decodes = computed == running
    used = decodes & (adapters > 0)
    if used.sum() < FEWEST:
        return None
    typical = float(np.median(running[used]))
    plain = decodes & (adapters == 0) & (np.abs(running - typical) <= ALIKE * typical)
    if plain.sum() < FEWEST:
        return None
    return float(np.median(length[used])), float(np.median(length[plain]))
