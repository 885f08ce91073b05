"""Computed tokens are padding."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict, prefill_saved
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.told import Gain, Told, measured, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.analyze.tokens import padding_if_sorted, padding_to_longest, padding_tokens
from phasetrace.model import Goal, Phase
from phasetrace.semconv import Cause

LONGEST = 'inputs = tokenizer(prompts, padding="longest", return_tensors="pt")'
SORTED = (
    "order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))\n"
    "batches = [order[i:i + size] for i in range(0, len(order), size)]",
    "model.generate_batch(prompt_ids, generation_config)  # continuous batching pads nothing",
)
WORDS = Words(
    fix=(
        "Compute no padding: pad to the longest of the batch instead of to a fixed length, sort"
        " prompts by length before batching, or use unpadded (packed, continuous) batches."
    ),
    tradeoff="Answers come in another order where prompts are sorted; keep each prompt's index.",
    commands={"transformers": (LONGEST, *SORTED)},
)
PADDED = 0.2  # of computed prompt positions; batches of real texts sorted by length stay below


def in_steps(evidence: Evidence) -> Seen | None:
    """The batches that were recorded hold much of it: to a fixed length, or beside a long prompt."""
    batches = [r for r in evidence.requests if len(r.request.sequences) > 1]
    padded = sum(padding_tokens(r.request) for r in batches)
    computed = padded + sum(r.request.prompt_tokens or 0 for r in batches)
    if not computed or padded < PADDED * computed:
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
    return Seen(
        saved + decode,
        evidence=(
            f"{percent(padded / computed)} of the prompt positions computed were padding:"
            f" {padded:,} of {computed:,} in {count(len(batches), 'batch', 'batches')}",
            f"prefill of these batches took {seconds(prefill)}",
            f"sorted by length, {left:,} positions of padding would stay"
            if at_hand and left and not everywhere
            else None,
            f"{count(after_end, 'row')} of decode were computed after their own end of sequence"
            if after_end
            else None,
        ),
        fix="Pad to the longest prompt of the batch, not to a fixed length."
        if everywhere
        else "Put prompts of like length into one batch: sort them, or split the long ones off.",
        commands={"transformers": (LONGEST,) if everywhere else SORTED},
        # What stays is counted, where it is known which prompts there are; else they come as they come. More
        # is won where decode steps were slow for the padding in their KV.
        prediction=predict(
            evidence,
            Saving(first_ns=saved, decode_ns=decode, least=0.85 if everywhere or at_hand else 0.5, most=1.1),
        ),
    )


def in_table(view: View) -> Told | None:
    """The user tried without, or much more is computed than prompts have."""
    pair = next(
        (p for p in view.pairs if p.worse.group.padded_prompt_tokens and "padded_prompt_tokens" in p.differs),
        None,
    )
    if pair is not None and (pair.worse.group.padded_prompt_tokens or 0) > (
        pair.better.group.padded_prompt_tokens or 0
    ):
        return tried(view, pair, f"padded_prompt_tokens {pair.worse.group.padded_prompt_tokens:,.0f}")
    s, g = view.subject, view.subject.group
    if view.goal is Goal.TPOT or not g.padded_prompt_tokens or not g.prompt_tokens:
        return None
    wasted = 1 - g.prompt_tokens / g.padded_prompt_tokens
    if wasted < PADDED:
        return None
    whole = s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
    part = min(1.0, s.prefill / whole) if s.prefill and whole else 1.0
    saved = min(0.95, wasted * part)
    gain: Gain = modelled(1 / (1 - saved), 0.4) if s.prefill else measured(1 / (1 - saved))
    return Told(
        Tier.FAULT,
        (
            f"{percent(wasted)} of the prompt positions are padding: {g.padded_prompt_tokens:,.0f}"
            f" computed for {g.prompt_tokens:,.0f} tokens",
        ),
        gain=gain,
        weight=saved,
        confidence="high",
    )


RULE = Rule(Cause.PADDING, WORDS, in_steps, in_table)
