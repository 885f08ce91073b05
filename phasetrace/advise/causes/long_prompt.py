"""Prefill runs at what the device can do: only fewer new tokens or more compute help."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes import prefix_not_reused
from phasetrace.advise.causes.prefix_not_reused import OWNS
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import doubt, fewer_read, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.ridge import GPU
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.told import Told, modelled
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.model import Goal, Phase, Request
from phasetrace.semconv import Cause

FEWER = "context = retrieve(question, top_k=3)  # half the prompt, half the prefill"
WORDS = Words(
    fix=(
        "Read fewer new prompt tokens: a shorter prompt, or a shared prefix put in front so that its"
        " cache is reused; else more compute (tensor parallel, fp8). Nothing else is wrong."
    ),
    tradeoff="A shorter prompt may leave out what the answer needs; check answers as well as times.",
    commands={
        **{engine: (FEWER, *typed) for engine, typed in prefix_not_reused.WORDS.commands.items()},
        "other": (FEWER,),
    },
)
LARGE_ALONE = 2.0  # times, on one device, where nothing has to be exchanged
LARGE = 2.5  # times what the engine should take: beyond, prefill is not at the device's bound
LIKE_DECODE = 0.25  # of a decode step, for a token of a prompt: on GPUs it is a hundredth
LONG = 1_000  # tokens: a page and a half; below, prefill costs a few decode steps
SHORTER = 0.5  # of the prompt, where nothing says how much less would do


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Prefill owns the goal's time, and prompts are long."""
    spent = evidence.phase_ns(Phase.PREFILL)
    lengths = [r.new_prompt_tokens for r in evidence.requests if r.new_prompt_tokens]
    whole = evidence.whole_ns
    if not whole or spent / whole < OWNS:
        return None
    if not lengths:
        return Measure("how many prompt tokens each request had")
    typical = statistics.median(_longest_prompt(r.request) for r in evidence.requests)
    if typical < LONG:
        return None
    each = [float(r.phase_ns(Phase.PREFILL)) for r in evidence.requests]
    spread = doubt(each)
    halved = fewer_read(evidence, sum(lengths) / 2, sum(lengths), least=0.9 - spread, most=1.1)
    return Seen(
        spent,
        evidence=(
            f"{percent(spent / whole)} of {evidence.whole} is prefill: {typical:,.0f} new tokens a prompt",
            f"{seconds(spent / sum(lengths))} a prompt token",
        ),
        confidence="medium",
        commands={evidence.engine: (FEWER,)} if evidence.knobs.get("enable_prefix_caching") is True else {},
        prediction=predict(evidence, halved),
        tier=Tier.BOUND,
    )


def _longest_prompt(request: Request) -> int:
    """Tokens of the longest prompt of a call, less what its sequences had cached: what no split avoids."""
    longest = max((s.prompt_tokens or 0 for s in request.sequences), default=0)
    return max(0, longest - (request.cached_tokens or 0) // max(1, len(request.sequences)))


def in_table(view: View) -> Told | None:
    """Prefill owns the goal's time, and takes what a well set-up engine takes on this device."""
    s = view.subject
    new = s.new_tokens
    if view.goal in (Goal.TPOT, Goal.THROUGHPUT) or s.prefill is None:
        return None
    whole = s.ttft if view.goal is Goal.TTFT else s.e2e
    if not whole or s.prefill < OWNS * whole:
        return None
    if new is None:
        return None
    tokens = new * s.together
    expected = s.prefill_with(tokens)
    if expected is None and (s.group.prefill_s is None or new < LONG):
        return None  # what else TTFT holds is not known, nor what prefill should take
    slower = s.prefill / expected if expected else None
    if slower is not None and slower > (LARGE if s.devices > 1 else LARGE_ALONE):
        return None
    if (
        s.tpot
        and new > GPU[1] / 8
        and s.prefill / tokens > LIKE_DECODE * s.tpot
        and s.table.hardware.kind != "cpu"
    ):
        return None  # a token read costs about as much as one written: that is not what bounds a GPU
    share = s.prefill / whole
    left = s.prefill_with(tokens * SHORTER)
    part = 1 - (left / expected if left and expected else SHORTER)
    return Told(
        Tier.BOUND,
        (
            f"prefill takes {seconds(s.prefill * 1e9)}, {percent(share)} of"
            f" {'TTFT' if view.goal is Goal.TTFT else 'the request'},"
            f" for {tokens:,.0f} new tokens",
            *(
                (
                    f"a well set-up engine needs about {seconds(expected * 1e9)} for that on this device:"
                    " none of it is waste",
                )
                if expected
                else ("the device's arithmetic is not known: that it runs at its bound was not checked",)
            ),
        ),
        gain=modelled(1 / (1 - share * part)),
        weight=share * part,
        seconds=s.prefill,
        confidence="medium" if expected else "low",
    )


RULE = Rule(Cause.LONG_PROMPT, WORDS, in_steps, in_table)
