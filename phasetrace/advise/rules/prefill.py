"""Causes of time before the first token, in the model."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, fewer_read, predict, prefill_saved
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.analyze.tokens import padding_if_sorted, padding_to_longest, padding_tokens
from phasetrace.model import Finding, Goal, NotEnoughData, Phase, Request
from phasetrace.semconv import Cause

PREFILL_SHARE = 0.3  # of the goal's time: below, even a prefill halved wins less than the 15 % that matter
LONG_PROMPT = 1_000  # tokens: a page and a half; below, prefill costs a few decode steps
PADDING_SHARE = 0.2  # of computed prompt positions; batches of real texts sorted by length stay below
ONE_OFF_SHARE = 0.01  # of all time; less is not worth a line


def long_prompt(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Prefill owns the time and computes only what it must: fewer new tokens or more compute."""
    spent = evidence.phase_ns(Phase.PREFILL)
    lengths = [r.new_prompt_tokens for r in evidence.requests if r.new_prompt_tokens]
    whole = (
        sum(r.ttft_ns or 0 for r in evidence.requests) if evidence.goal is Goal.TTFT else evidence.total_ns
    )
    if not whole or spent / whole < PREFILL_SHARE:
        return None
    if not lengths:
        return NotEnoughData(Cause.LONG_PROMPT, "how many prompt tokens each request had")
    typical = statistics.median(_longest_prompt(r.request) for r in evidence.requests)
    if typical < LONG_PROMPT:
        return None
    each = [float(r.phase_ns(Phase.PREFILL)) for r in evidence.requests]
    spread = doubt(each)
    halved = fewer_read(evidence, sum(lengths) / 2, sum(lengths), least=0.9 - spread, most=1.1)
    return Finding(
        cause=Cause.LONG_PROMPT,
        phase=Phase.PREFILL,
        ns=spent,
        share=evidence.share(spent),
        confidence="medium",
        evidence=(
            f"{percent(spent / whole)} of what counts is prefill: {typical:,.0f} new tokens a prompt",
            f"{seconds(spent / sum(lengths))} a prompt token",
        ),
        recommendation="Send fewer new tokens: shorten the prompt, or reuse the KV cache of what repeats.",
        commands=(
            "context = retrieve(question, top_k=3)  # half the prompt, half the prefill",
            *(
                ("model.generate(**inputs, past_key_values=copy.deepcopy(cache_of_the_prefix))",)
                if evidence.engine == "transformers"
                else ()
                if evidence.knobs.get("enable_prefix_caching") is True
                else evidence.typed(Cause.PREFIX_NOT_REUSED)
            ),
        ),
        tradeoff="A shorter prompt may leave out what the answer needs; check answers as well as times.",
        prediction=predict(evidence, halved),
    )


def padding(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Much of what prefill computes is padding: short prompts share a batch with a long one."""
    batches = [r for r in evidence.requests if len(r.request.sequences) > 1]
    padded = sum(padding_tokens(r.request) for r in batches)
    computed = padded + sum(r.request.prompt_tokens or 0 for r in batches)
    if not computed or padded < PADDING_SHARE * computed:
        return None
    prefill = sum(r.phase_ns(Phase.PREFILL) for r in batches)
    everywhere = all(s.padding_tokens for r in batches for s in r.request.sequences)
    calls = [r.request for r in batches]
    at_hand = len(calls) > 1 and evidence.load is not None and evidence.load.back_to_back
    left = padding_to_longest(calls) if everywhere else padding_if_sorted(calls) if at_hand else 0
    fewer = max(0, padded - left)
    saved = min(prefill_saved(evidence, fewer, computed), prefill * fewer / computed)
    after_end = sum(r.padded_decode_tokens or 0 for r in batches)
    decode = 0.0
    if evidence.step is not None and evidence.step.per_row_ns:
        decode = evidence.step.per_row_ns * after_end
    return Finding(
        cause=Cause.PADDING,
        phase=Phase.PREFILL,
        ns=int(saved + decode),
        share=evidence.share(saved + decode),
        confidence="high",
        evidence=(
            f"{percent(padded / computed)} of the prompt positions computed were padding:"
            f" {padded:,} of {computed:,} in {count(len(batches), 'batch', 'batches')}",
            f"prefill of these batches took {seconds(prefill)}",
            *(
                (f"sorted by length, {left:,} of these would stay",)
                if at_hand and left and not everywhere
                else ()
            ),
            f"{count(after_end, 'row')} of decode were computed after their own end of sequence",
        ),
        recommendation=(
            "Pad to the longest prompt of the batch, not to a fixed length."
            if everywhere
            else "Put prompts of like length into one batch: sort them, or split the long ones off."
        ),
        commands=(
            ('inputs = tokenizer(prompts, padding="longest", return_tensors="pt")',)
            if everywhere
            else (
                "order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))\n"
                "batches = [order[i:i + size] for i in range(0, len(order), size)]",
                "model.generate_batch(prompt_ids, generation_config)  # continuous batching pads nothing",
            )
        ),
        tradeoff="Answers come in another order; keep each prompt's index.",
        # What stays is counted, where it is known which prompts there are; else they come as they come.
        prediction=predict(
            evidence,
            Saving(first_ns=saved, decode_ns=decode, least=0.85 if everywhere or at_hand else 0.5, most=1.05),
        ),
    )


def warm_up(evidence: Evidence) -> Finding | NotEnoughData | None:
    """The first requests paid for compilation, autotuning, lazy loading or first allocations."""
    requests = sorted(
        (*evidence.breakdown.warm_up, *evidence.requests), key=lambda r: (r.request.arrival_ns, r.request.id)
    )
    excess = sum(evidence.one_off_ns.values())
    everything = sum(r.e2e_ns for r in requests)
    if not everything or excess < ONE_OFF_SHARE * everything:
        return None
    cold = [r for r in requests if evidence.one_off_ns.get(r.request.id)]
    rest = [float(r.e2e_ns) for r in requests if not evidence.one_off_ns.get(r.request.id)]
    in_prefill = sum(min(evidence.one_off_ns[r.request.id], r.phase_ns(Phase.PREFILL)) for r in cold)
    spread = doubt(rest)
    recurring = not rest
    usual = statistics.median(rest) if rest else 0.0
    return Finding(
        cause=Cause.WARM_UP,
        phase=Phase.PREFILL,
        ns=excess,
        share=excess / everything,
        confidence="medium" if recurring or len(rest) < 3 else "high",
        evidence=(
            f"one-off work in {count(len(cold), 'request')}, the first of {len(requests):,}, took"
            f" {seconds(excess)}: {percent(excess / everything)} of all time",
            *(
                (
                    f"the first took {seconds(cold[0].e2e_ns)}, the later ones"
                    f" {seconds(usual)} (median): {times(cold[0].e2e_ns / usual)}",
                )
                if rest
                else ("every request shows it: shapes change, and each shape is prepared again",)
            ),
        ),
        recommendation=(
            "Keep shapes fixed, so that what was prepared once serves all requests."
            if recurring
            else "Warm the model before the first user: one call with a typical shape at start-up."
        ),
        commands=evidence.typed(
            Cause.WARM_UP,
            (
                (
                    'model.generate(**inputs, cache_implementation="static", max_new_tokens=n)  # one shape\n'
                    'tokenizer(prompts, padding="max_length", max_length=bucket)',
                )
                if recurring
                else ("model.generate(**typical_inputs, max_new_tokens=8)  # once, before serving",)
            ),
        ),
        tradeoff="Start-up takes as much longer; measure without the first request.",
        prediction=predict(
            evidence,
            Saving(
                first_ns=in_prefill,
                decode_ns=excess - in_prefill,
                least=1 - spread,
                most=1 + spread / 2,
            ),
            requests,
        ),
    )


def _longest_prompt(request: Request) -> int:
    """Tokens of the longest prompt of a call, less what its sequences had cached: what no split avoids."""
    longest = max((s.prompt_tokens or 0 for s in request.sequences), default=0)
    return max(0, longest - (request.cached_tokens or 0) // max(1, len(request.sequences)))
