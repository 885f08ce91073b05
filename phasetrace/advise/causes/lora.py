"""Unmerged adapters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.queueing import Queue
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.waiting import held_up, scheduler_ns
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.model import Goal, Phase, Steps, Wait
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Merge the adapter into the weights where there is only one, else use newer adapter kernels and the"
        " smallest max_lora_rank that fits."
    ),
    tradeoff="A merged model serves this one adapter only.",
    commands={
        "vllm": ("model.merge_and_unload().save_pretrained(path)  # PEFT, then serve the merged model",),
        "transformers": ("model = model.merge_and_unload()",),
        "sglang": ("model.merge_and_unload().save_pretrained(path)  # PEFT, then serve the merged model",),
    },
)
FEWEST = 8  # steps of a kind: the median of fewer is chance
ALIKE = 0.25  # of the sequences, more or fewer: steps that may be compared
SLOWER = 1.15  # times a step without adapters: with less, merging is not worth it


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Requests wait for their adapter, or steps with adapters take clearly longer than those without."""
    adapted = [r for r in evidence.requests if r.request.settings.get("lora")]
    if not adapted:
        return None
    held = held_up(evidence, Wait.LORA)
    if isinstance(held, Queue):
        return _waiting(evidence, scheduler_ns(evidence) * held.share(Wait.LORA))
    decode = sum(r.phase_ns(Phase.DECODE) for r in adapted)
    compared = _with_and_without(evidence.breakdown.recording.steps)
    if evidence.goal is Goal.TTFT or not decode:
        return None
    if compared is None:
        return Measure("the same load without adapters, to see what they cost a step")
    with_s, without = compared
    if with_s < SLOWER * without:
        return None
    saved = decode * (1 - without / with_s)
    return Seen(
        saved,
        evidence=(
            f"a step with adapters takes {seconds(with_s)}, one of as many sequences without"
            f" {seconds(without)}: {times(with_s / without)}",
            f"{count(len(adapted), 'request')} of {len(evidence.requests):,} use one",
        ),
        prediction=predict(evidence, Saving(decode_ns=saved, least=0.7, most=1.1)),
    )


def _waiting(evidence: Evidence, waited: float) -> Seen:
    most = evidence.knob("max_loras")
    return Seen(
        waited,
        evidence=(
            f"{percent(waited / evidence.whole_ns)} of {evidence.whole} is spent waiting for a place among"
            " the adapters of a step",
            f"{most:,.0f} may be in one step (max_loras)" if most else None,
        ),
        fix="Let more adapters into a step (max_loras), or merge those that are used most.",
        commands={"vllm": (f"--max-loras {int((most or 1) * 2)}",)},
        tradeoff="Each adapter in a step takes memory and makes the step longer.",
        prediction=predict(evidence, Saving(first_ns=waited, least=0.4, most=1.0)),
    )


def _with_and_without(chunks: Sequence[Steps]) -> tuple[float, float] | None:
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


def in_table(view: View) -> Told | None:
    """The user tried without or with fewer, or steps take longer than they should with adapters unmerged."""
    for pair in view.compared:
        if "lora_adapters" in pair.differs and (pair.worse.group.lora_adapters or 0) > (
            pair.better.group.lora_adapters or 0
        ):
            return tried(view, pair, "lora_adapters")
        if any(
            n in pair.differs for n in ("enable_lora", "max_lora_rank", "max_loras")
        ) and pair.worse.knobs.get("enable_lora", True):
            return tried(view, pair, "enable_lora")
    s = view.subject
    adapters = s.group.lora_adapters or (1 if s.knobs.get("enable_lora") in (True, 1, "true") else 0)
    if adapters and s.slower is not None and s.slower >= 1.6 and view.goal is not Goal.TTFT and s.devices < 2:
        return Told(
            Tier.FAULT,
            (
                f"{adapters:,.0f} adapter{'s' if adapters != 1 else ''} run unmerged, and a step takes"
                f" {times(s.slower)} of what the plain model takes",
            ),
            gain=modelled(s.slower, 0.5),
            weight=1 - 1 / s.slower,
            confidence="medium",
        )
    return None


RULE = Rule(Cause.LORA, WORDS, in_steps, in_table)
