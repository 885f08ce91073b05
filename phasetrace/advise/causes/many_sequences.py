"""Beams, n or best_of multiply the work."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Goal, Part, Phase, RequestBreakdown
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Use fewer beams or sequences a request (num_beams, n, best_of, num_return_sequences).",
    tradeoff="Fewer candidates: check the quality of answers with one.",
    commands={
        "vllm": ("SamplingParams(n=1)",),
        "transformers": ("model.generate(**inputs, num_beams=1, num_return_sequences=1)",),
    },
)
SHARE = 0.25  # of the time is their decode: with less, one sequence instead of several wins little
ROW_COST = 0.35  # exponent of the cost of n sequences a prompt, n ** 0.35: between free (0) and n times (1)


def in_steps(evidence: Evidence) -> Seen | None:
    """Requests asked for several, and decode is a large part of the time."""
    copies = [_copies(r) for r in evidence.requests]
    affected = [r for r, n in zip(evidence.requests, copies, strict=True) if n > 1]
    decode = sum(r.phase_ns(Phase.DECODE) for r in affected)
    if not affected or evidence.share(decode) < SHARE:
        return None
    n = statistics.median(c for c in copies if c > 1)
    step = evidence.step
    if (
        step is not None
        and step.per_row_ns is not None
        and step.fixed_ns is not None
        and step.fewest_rows < n
    ):
        one = step.fixed_ns + step.per_row_ns
        factor = one / (step.fixed_ns + step.per_row_ns * n)
        confidence, source = "high", "by the cost of a sequence that the trace's own batch sizes show"
    else:
        factor, confidence, source = (
            n**-ROW_COST,
            "low",
            "by a usual cost: the trace holds one batch size only",
        )
    saved = decode * (1 - factor)
    # generate() computes the prompt n times, too; servers share it.
    copied = [r for r in affected if r.request.engine == "transformers"]
    prefill = sum(r.phase_ns(Phase.PREFILL) for r in copied) * (1 - 1 / n)
    beams = any((r.request.settings.get("num_beams") or 1) != 1 for r in affected)
    return Seen(
        decode,
        evidence=(
            f"{n:.0f} {'beams' if beams else 'sequences'} a prompt in {count(len(affected), 'request')}",
            f"with one, a step would take {percent(factor)} of what it takes, {source}",
            f"beside the forward pass: {seconds(evidence.part_ns(Part.UPDATE, Phase.DECODE))} moving caches,"
            f" {seconds(evidence.part_ns(Part.LOGITS, Phase.DECODE))} scoring",
        ),
        confidence=confidence,
        prediction=predict(
            evidence,
            Saving(
                first_ns=prefill,
                decode_ns=saved,
                least=0.8 if confidence == "high" else 0.2,
                most=1.2,
            ),
        ),
    )


def _copies(request: RequestBreakdown) -> int:
    settings = request.request.settings
    stated = [settings.get("num_beams"), settings.get("num_return_sequences")]
    return max([n for n in stated if isinstance(n, int)], default=1)


def in_table(view: View) -> Told | None:
    """The user tried with fewer, or several are written for each request."""
    pair = max(
        (
            p
            for p in view.compared
            if "sequences_per_request" in p.differs and _asked_for(p.worse) > _asked_for(p.better)
        ),
        key=lambda p: (-len(p.differs), p.ratio),
        default=None,
    )
    if pair is not None:
        return tried(view, pair, "sequences_per_request")
    s = view.subject
    n = max(_asked_for(s), s.knob("num_beams", "best_of", "n", "num_return_sequences") or 1.0)
    if n < 2 or view.goal is Goal.TTFT:
        return None
    one, many = s.step_with(batch=(s.width or n) / n), s.step_with(batch=s.width or n)
    slower = many / one if one and many else n**ROW_COST
    return Told(
        Tier.FAULT,
        (f"{n:,.0f} sequences are written for each request",),
        gain=modelled(max(slower, 1.2), 0.5),
        weight=max(0.2, 1 - 1 / slower),
    )


def _asked_for(s: Setting) -> float:
    return s.group.sequences_per_request or 1.0


RULE = Rule(Cause.MANY_SEQUENCES, WORDS, in_steps, in_table)
