"""Speculation that costs more than it brings."""

from __future__ import annotations

import statistics

from phasetrace.advise.drafting import drafting
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze.tokens import decode_steps
from phasetrace.model import Finding, Goal, NotEnoughData, Part, Phase
from phasetrace.semconv import Cause

OWNS = 0.25  # of the time: what decode must own before its drafts are worth a look
SPECULATIVE = ("assisted", "prompt_lookup")
DRAFTERS = ("num_speculative_tokens",)
# Of a step without its drafted positions: what writing the drafts may still have taken, which no step tells
# apart. A run with and one without (n-grams, a vLLM for CPUs, as much of the machine) were off by 27 %.
DRAFTER = 1 / 3
CLEAR_LOSS = 1.05  # times a plain step a token: below, drafting is a draw


def speculation_loss(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Drafting costs more than the accepted tokens save."""
    if evidence.engine != "transformers":
        return _in_shared_steps(evidence)
    speculating = [r for r in evidence.requests if r.request.mode in SPECULATIVE]
    counted = [(r, n) for r in speculating if (n := decode_steps(r.request, evidence.table))]
    decode = sum(r.phase_ns(Phase.DECODE) for r in speculating)
    if not speculating or evidence.share(decode) < OWNS:
        return None
    if not counted:
        return NotEnoughData(
            Cause.SPECULATION_LOSS, "steps, to count the tokens that each verification accepted"
        )
    steps = sum(n for _, n in counted)
    tokens = sum((r.request.longest_output or 1) - 1 for r, _ in counted)
    spent = sum(r.phase_ns(Phase.DECODE) for r, _ in counted)
    draft = sum(r.part_ns(Phase.DECODE, Part.DRAFT) for r, _ in counted)
    plain = [r.tpot_ns for r in evidence.requests if r.request.mode not in SPECULATIVE and r.tpot_ns]
    # A plain step takes no longer than a verification, which computes more positions and reads the same
    # weights.
    each = statistics.median(plain) if plain else (spent - draft) / steps
    if tokens == 0 or spent / tokens < CLEAR_LOSS * each:
        return None
    saved = spent - each * tokens
    return Finding(
        cause=Cause.SPECULATION_LOSS,
        phase=Phase.DECODE,
        ns=int(saved),
        share=evidence.share(saved),
        confidence="high",
        evidence=(
            f"a step gives {tokens / steps:.2f} tokens; {percent(draft / spent)} of decode is drafting",
            f"{seconds(spent / tokens)} a token with drafts; a plain step takes"
            f" {'' if plain else 'at most '}{seconds(each)}",
        ),
        recommendation="Switch speculation off, or draft fewer tokens with a cheaper draft.",
        commands=(
            "model.generate(**inputs)  # without assistant_model / prompt_lookup_num_tokens",
            "assistant.generation_config.num_assistant_tokens = 2",
        ),
        tradeoff="Inputs whose drafts are accepted (code edits, quotes) lose their gain.",
        prediction=predict(evidence, Saving(decode_ns=saved, least=0.8, most=1.0 if plain else 1.5)),
    )


def _in_shared_steps(evidence: Evidence) -> Finding | NotEnoughData | None:
    decode, stated = evidence.phase_ns(Phase.DECODE), evidence.knob(*DRAFTERS)
    if not stated or not decode or evidence.goal is Goal.TTFT:
        return None
    found = drafting(evidence)
    if found is None:
        return NotEnoughData(Cause.SPECULATION_LOSS, "how many positions each decode step computed, and gave")
    now, plain = found.step_ns / found.given, found.plain_ns
    if now < CLEAR_LOSS * plain and (found.seen or found.given >= CLEAR_LOSS):
        return None
    spent = decode * found.share
    saved = spent * max(0.0, 1 - plain / now)
    drafter = DRAFTER * (spent - saved) / saved if saved else 0.0
    fewer = round(found.accepted * found.drafted)
    return Finding(
        cause=Cause.SPECULATION_LOSS,
        phase=Phase.DECODE,
        ns=int(saved),
        share=evidence.share(saved),
        confidence="high" if found.seen else "medium",
        evidence=(
            f"{found.drafted:.2g} tokens are drafted for each in a step and {percent(found.accepted)} of them"
            f" are right: a step gives {found.given:.2f} tokens a sequence",
            f"a step that verifies drafts takes {seconds(found.step_ns)}, {seconds(now)} a token; without"
            f" drafts it would take {'about' if found.seen else 'at most'} {seconds(plain)}",
        ),
        recommendation="Switch speculation off (speculative_config)"
        + (
            f", or draft fewer tokens: {fewer} instead of {stated:,.0f} (num_speculative_tokens)."
            if fewer
            else f", or draft with something better: of {stated:,.0f} drafted tokens hardly one is right."
        ),
        commands=(
            "# leave out --speculative-config",
            *((f"--speculative-config.num_speculative_tokens {fewer}",) if fewer else ()),
        )
        if evidence.engine == "vllm"
        else evidence.typed(Cause.SPECULATION_LOSS),
        tradeoff="Inputs whose drafts are accepted (code edits, quotes) lose their gain.",
        prediction=predict(
            evidence, Saving(decode_ns=saved, least=0.6, most=1 + max(drafter, 0.15 if found.seen else 0.5))
        ),
    )
