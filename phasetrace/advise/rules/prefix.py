"""Prompts that share text which is computed again for each: at their front, or behind one that differs."""

from __future__ import annotations

import statistics
from itertools import pairwise

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import fewer_read, predict
from phasetrace.advise.prefixes import Front, behind_front
from phasetrace.advise.words import count, percent
from phasetrace.model import Finding, NotEnoughData, Phase, RequestBreakdown
from phasetrace.semconv import Cause

PREFILL_SHARE = 0.3  # of the time: below, even a prefill halved wins less than the 15 % that matter
REPEATED_SHARE = 0.3  # of new prompt tokens; chat templates alone repeat less
REPEATED_TOKENS = 64  # a request: two chunks; below, restoring a cache costs as much as computing it
TURNS = 3  # that repeat more and more: two prompts of a shared prefix do so by chance


def prefix_not_reused(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Prompts are alike, and what they share is computed again for each: at the front, or behind a change."""
    hashed = [r for r in evidence.requests if r.repeated_prompt_tokens is not None and r.new_prompt_tokens]
    prefill = evidence.phase_ns(Phase.PREFILL)
    if not hashed:
        if len(evidence.requests) > 1 and evidence.share(prefill) >= PREFILL_SHARE:
            return NotEnoughData(
                Cause.PREFIX_NOT_REUSED, "hashes of the prompts' chunks, to see whether they begin alike"
            )
        return None
    new = sum(r.new_prompt_tokens or 0 for r in hashed)
    again = [r.repeated_prompt_tokens for r in hashed if r.repeated_prompt_tokens]
    repeated, front = sum(again), behind_front(r.request for r in hashed)
    if front is not None and front.behind > repeated:
        if front.behind < REPEATED_SHARE * new or front.each < REPEATED_TOKENS:
            return None
        return _front_differs(evidence, front, new)
    if repeated < REPEATED_SHARE * new or statistics.median(again) < REPEATED_TOKENS:
        return None
    return _computed_again(evidence, hashed, repeated, new)


def _front_differs(evidence: Evidence, front: Front, new: int) -> Finding:
    fewer = min(front.requests * _whole_blocks(evidence, front.each), new)
    spared = fewer_read(evidence, fewer, new, least=0.6, most=1.1)
    saved = spared.total_ns
    at = f"after {front.differs_at:,.0f} tokens" if front.differs_at else "at their first tokens"
    return Finding(
        cause=Cause.PREFIX_NOT_REUSED,
        phase=Phase.PREFILL,
        ns=int(saved),
        share=evidence.share(saved),
        confidence="high",
        evidence=(
            f"prompts start to differ {at}, and {front.each:,.0f} tokens (median) behind that are the same as"
            f" in an earlier prompt: a cache of prefixes ends at the first difference",
            f"{percent(min(1.0, front.behind / new))} of the prompt tokens that were computed could have been"
            f" reused: {count(front.behind, 'token')} in {count(front.requests, 'prompt')}",
        ),
        recommendation=(
            f"Put what is the same in each request in front, and what changes behind it: prompts start to"
            f" differ {at} (a date, an id, a name?). Then let the prefix cache reuse the"
            f" {front.each:,.0f} tokens that follow."
        ),
        commands=("prompt = SHARED_INSTRUCTIONS + what_changes_each_time", *_caching(evidence)),
        tradeoff="Models may follow what stands first or last more closely: check answers.",
        prediction=predict(evidence, spared),
    )


def _computed_again(evidence: Evidence, hashed: list[RequestBreakdown], repeated: int, new: int) -> Finding:
    again = [r.repeated_prompt_tokens for r in hashed if r.repeated_prompt_tokens]
    spared = fewer_read(evidence, sum(_whole_blocks(evidence, n) for n in again), new, least=0.7, most=1.1)
    saved = spared.total_ns
    off = evidence.knobs.get("enable_prefix_caching") is False
    served = evidence.engine != "transformers"
    grows = _grows(hashed)
    return Finding(
        cause=Cause.PREFIX_NOT_REUSED,
        phase=Phase.PREFILL,
        ns=int(saved),
        share=evidence.share(saved),
        confidence="high",
        evidence=(
            f"{percent(repeated / new)} of the prompt tokens that were computed had been computed before:"
            f" {count(repeated, 'token')} in {count(len(again), 'request')}",
            f"they begin with the same {statistics.median(again):,.0f} tokens (median) as an earlier request",
            *(("prefix caching is off",) if off else ()),
        ),
        recommendation=(
            (
                "Switch prefix caching on: the shared prefix is then computed once."
                if off
                else "Let the shared prefix stay in the cache: more memory for it, requests of one prefix to"
                " one replica; check that the model supports prefix caching."
            )
            if served
            else "Keep the KV cache of the conversation, and compute only what a turn adds."
            if grows
            else "Compute the shared beginning once, and start every request from its KV cache."
        ),
        commands=(_caching(evidence) or evidence.typed(Cause.KV_FULL))
        if served
        else (
            (
                "cache = DynamicCache()  # one a conversation\n"
                "# every turn; inputs begin with the very ids that the last one returned:\n"
                "ids = model.generate(**inputs, past_key_values=cache)",
            )
            if grows
            else (
                "with torch.no_grad():  # once\n"
                "    prefix = model(**prefix_inputs, use_cache=True).past_key_values\n"
                "# every request, with its whole prompt in inputs:\n"
                "model.generate(**inputs, past_key_values=copy.deepcopy(prefix))",
            )
        ),
        tradeoff=(
            "The cache takes KV blocks, which are given up when requests need them."
            if served
            else "The cache stays in memory between turns; a history that is cut or edited needs a new one."
            if grows
            else "The cache of the prefix stays in memory, and is copied for each request."
        ),
        prediction=predict(evidence, spared),
    )


def _whole_blocks(evidence: Evidence, tokens: float) -> float:
    """What a cache of KV blocks gives back of so many tokens: it keeps no part of a block."""
    size = evidence.knob("block_size") or 1
    return tokens // size * size


def _caching(evidence: Evidence) -> tuple[str, ...]:
    """How an engine is told to keep prefixes; nothing where it does already."""
    if evidence.engine == "transformers" or evidence.knobs.get("enable_prefix_caching") is True:
        return ()
    return evidence.typed(Cause.PREFIX_NOT_REUSED)


def _grows(requests: list[RequestBreakdown]) -> bool:
    """Each request repeats more than the one before it: the turns of a conversation, each with all before."""
    repeated = [
        r.repeated_prompt_tokens
        for r in sorted(requests, key=lambda r: (r.request.arrival_ns, r.request.id))
        if r.repeated_prompt_tokens
    ]
    return len(repeated) >= TURNS and all(a < b for a, b in pairwise(repeated))
