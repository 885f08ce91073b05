"""Periodic stalls from the garbage collector."""

from __future__ import annotations

import re

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Goal, Part, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Freeze the garbage collector's long-lived objects after warm-up (gc.freeze()), or raise its"
    " thresholds, so that full collections skip them.",
    tradeoff="Frozen objects are never freed, and cycles of garbage live longer: watch its process's memory.",
    commands={
        "vllm": ("gc.freeze()  # after warm-up, in the engine's process",),
        "sglang": ("curl -X POST http://HOST:PORT/freeze_gc  # after warm-up",),
        "transformers": (
            "gc.collect(); gc.freeze()  # after the model is loaded\ngc.set_threshold(100_000, 50, 1000)",
        ),
    },
)
GC_SHARE = 0.03  # of the requests' time: collections of a small heap take less than a thousandth
STALLS = 3.0  # times a step: a stall is seen beside ordinary steps


def in_steps(evidence: Evidence) -> Seen | None:
    """Its collections were recorded, and take more than those of a small heap."""
    by_phase = {phase: evidence.part_ns(Part.GC, phase) for phase in Phase}
    spent = sum(by_phase.values())
    if evidence.share(spent) < GC_SHARE:
        return None
    pauses = evidence.breakdown.recording.pauses
    longest = max((p.end_ns - p.begin_ns for p in pauses), default=0)
    full = sum(1 for p in pauses if p.detail.get("generation") == 2)
    early = by_phase[Phase.FRONTEND] + by_phase[Phase.QUEUE] + by_phase[Phase.PREFILL]
    return Seen(
        spent,
        evidence=(
            f"{count(len(pauses), 'collection')} took {percent(evidence.share(spent))} of the requests' time,"
            f" {full} of them of all generations",
            f"the longest stopped the process for {seconds(longest)}",
        ),
        prediction=predict(
            evidence,
            Saving(early, by_phase[Phase.DECODE], by_phase[Phase.DELIVERY], least=0.7, most=1.0),
        ),
    )


def in_table(view: View) -> Told | None:
    """The user tried without it, or all stops at regular intervals and nobody else is the reason."""
    stalled = next((x for x in view.settings if x.group.stall_s), None)
    collecting = [n for p in view.pairs for n in p.differs if re.search(r"(?:^|_)gc(?:_|$)", n.lower())]
    pair = view.contrast(*collecting)
    if pair is not None:
        return tried(view, pair, "the garbage collector as it is")
    if stalled is None:
        return None
    s, g = stalled, stalled.group
    stall, period = g.stall_s or 0.0, g.stall_period_s
    if not period or g.prefilling_concurrently or g.preemptions or (s.tpot and stall < STALLS * s.tpot):
        return None
    part = min(0.9, stall / period)
    tail = view.goal in (Goal.TPOT, Goal.E2E)
    return Told(
        Tier.FAULT,
        (
            f"everything stops for {seconds(stall * 1e9)} every {seconds(period * 1e9)}: regular, so no other"
            " request's work",
        ),
        gain=modelled(1 / (1 - part), 0.3) if s.tpot else None,
        weight=max(part, 0.2 if tail else 0.16),
        setting=s,
    )


RULE = Rule(Cause.GC_PAUSE, WORDS, in_steps, in_table)
