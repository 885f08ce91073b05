"""Causes in decode that lie in what is asked of the model: how much, how many at a time, how it is set."""

from __future__ import annotations

import math
import statistics

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict, predict_between, prediction
from phasetrace.advise.recompute import decode_rows_of, recomputes
from phasetrace.advise.ridge import left, ridge
from phasetrace.advise.words import count, percent, seconds
from phasetrace.analyze.non_negative import non_negative
from phasetrace.analyze.rates import FORWARD, LEAST_RANGE
from phasetrace.analyze.step_table import UNKNOWN
from phasetrace.model import Finding, Goal, Ints, NotEnoughData, Part, Phase, RequestBreakdown
from phasetrace.semconv import Cause

OWNS = 0.5  # of the time: decode owns it when all else together is less
CLEARLY_OWNS = 0.7  # without a stated goal, nothing else may be worth a look
LONG_OUTPUT = (
    512  # tokens: twice a usual chat answer; with a stated goal any length that owns the time counts
)
SHORTER = 0.5  # of the output, where no target says how much: a step that a prompt can ask for
UNSEEN = (0.2, 0.05, 0.5)  # of a step stays: likely, least, most, where its positions are not known
ROW_COST = 0.35  # exponent of the cost of n sequences a prompt, n ** 0.35: between free (0) and n times (1)


def long_output(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Decode owns the time because many tokens are written, one a step."""
    decode = evidence.phase_ns(Phase.DECODE)
    written = [r for r in evidence.requests if (r.request.longest_output or 0) > 1 and r.tpot_ns]
    if evidence.goal is Goal.TTFT:
        return _not_streamed(evidence)
    if evidence.goal is not Goal.E2E or evidence.share(decode) < (
        OWNS if evidence.goal_stated else CLEARLY_OWNS
    ):
        return None
    if not written:
        return NotEnoughData(Cause.LONG_OUTPUT, "how many tokens each request wrote")
    lengths = [r.request.longest_output or 0 for r in written]
    typical = statistics.median(lengths)
    target = (evidence.slo or {}).get("e2e")
    if typical < LONG_OUTPUT and not evidence.goal_stated:
        return None
    keep = int(typical * SHORTER) if target is None else _tokens_within(written, target)
    if keep < 1:
        return None  # the first token alone misses the target: the output is not what to cut
    saved = sum(_after(evidence, request, keep) for request in written)
    rates = [r.tpot_ns or 0.0 for r in written]
    spread = doubt(rates)
    return Finding(
        cause=Cause.LONG_OUTPUT,
        phase=Phase.DECODE,
        ns=decode,
        share=evidence.share(decode),
        confidence="high" if evidence.goal_stated else "medium",
        evidence=(
            f"decode is {percent(evidence.share(decode))} of the time: {typical:,.0f} tokens a request"
            f" (median) at {seconds(statistics.median(rates))} each",
            f"prefill is {percent(evidence.share(evidence.phase_ns(Phase.PREFILL)))}:"
            " a shorter prompt wins at most that",
            *(
                (f"{keep:,} tokens at this rate fit the target of {seconds(target * 1e9)}",)
                if target is not None
                else ()
            ),
        ),
        recommendation=f"Write fewer tokens: about {keep:,} instead of {typical:,.0f}.",
        commands=(f"SamplingParams(max_tokens={keep})  # the cap also bounds the slowest request",)
        if evidence.engine == "vllm"
        else evidence.typed(
            Cause.LONG_OUTPUT,
            (
                f"model.generate(**inputs, max_new_tokens={keep})  # also bounds the slowest request",
                f'prompt += " Answer in at most {max(1, round(keep * 0.7, -1)):,.0f} words."',
                "model.generate(**inputs, streamer=TextIteratorStreamer(tokenizer))  # first words at once",
            ),
        ),
        tradeoff="Answers that need more tokens are cut; ask for brevity, and keep the cap as the bound.",
        prediction=predict(
            evidence, Saving(decode_ns=saved, least=1 - spread / 2, most=1 + min(spread / 2, 0.02))
        ),
    )


def _not_streamed(evidence: Evidence) -> Finding | None:
    """The whole answer is written before the user has the first of it."""
    held = [r for r in evidence.requests if _handed_over_whole(r)]
    waited = sum(r.first_delivery_ns or 0 for r in held)
    if not held or not evidence.whole_ns or waited < OWNS * evidence.whole_ns:
        return None
    first = [(r.ttft_ns or 0) - (r.first_delivery_ns or 0) for r in held]
    engine, spread = statistics.median(first), doubt(first)
    known = 1e9 * sum(r.ttft_ns is not None for r in evidence.requests)
    before, after = evidence.whole_ns / known, (evidence.whole_ns - waited) / known
    typical = statistics.median(r.request.longest_output or 0 for r in held)
    return Finding(
        cause=Cause.LONG_OUTPUT,
        phase=Phase.DECODE,
        ns=waited,
        share=evidence.share(waited),
        confidence="high",
        evidence=(
            f"{percent(waited / evidence.whole_ns)} of the time to first tokens is the rest of the answer:"
            f" {count(len(held), 'answer')} of {typical:,.0f} tokens (median) came in one piece",
            f"the engine had the first token after {seconds(engine)} (median)",
        ),
        recommendation=(
            f"Stream the answer: the first token is there after {seconds(engine)}. Where that cannot be,"
            " write fewer tokens (max_tokens)."
        ),
        commands=(
            ('"stream": true  # in the request, or stream=True in the client',)
            if evidence.engine != "transformers"
            else ("model.generate(**inputs, streamer=TextIteratorStreamer(tokenizer))",)
        ),
        tradeoff="A stream is many small messages: client and proxies have to pass each one on at once.",
        # What is left was measured; that handing over each token costs something was not
        prediction=prediction(Goal.TTFT, before, after, after * (1 - spread), after * (1 + 2 * spread)),
    )


def _handed_over_whole(request: RequestBreakdown) -> bool:
    handed, last = request.request.first_output_ns, request.request.last_token_ns
    several = (request.request.longest_output or 0) > 1
    return handed is not None and last is not None and handed >= last and several


def no_kv_cache(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Each step computes the whole sequence again, because the KV cache is off."""
    affected = [r for r in evidence.requests if recomputes(evidence, r)]
    decode = sum(r.phase_ns(Phase.DECODE) for r in affected)
    if not affected or decode < 0.05 * evidence.total_ns:
        return None
    rows = [rows for r in affected if (rows := decode_rows_of(evidence, r))]
    computed = np.concatenate([evidence.table.computed_tokens[r.begin : r.end] for r in rows])
    forward = np.concatenate([evidence.table.parts[r.begin : r.end, FORWARD] for r in rows])
    sequences = max(1, len(affected[0].request.sequences))
    known = computed != UNKNOWN
    spent = float(forward.sum())
    stays = _stays(evidence, computed[known], forward[known], sequences)
    off = all(r.request.settings.get("use_cache") is False for r in affected)
    per_step = computed[known].mean() / sequences if known.any() else 0
    return Finding(
        cause=Cause.NO_KV_CACHE,
        phase=Phase.DECODE,
        ns=decode,
        share=evidence.share(decode),
        confidence="high",
        evidence=(
            *(
                (f"a decode step computes {per_step:,.0f} positions a sequence, where one is new",)
                if per_step
                else ()
            ),
            f"decode is {percent(evidence.share(decode))} of the time in {count(len(affected), 'request')}",
            *(("`use_cache` is False in their settings",) if off else ()),
        ),
        recommendation="Switch the KV cache on, so that a step computes only the new token.",
        commands=(
            "model.config.use_cache = True\nmodel.generation_config.use_cache = True",
            "model.generate(**inputs, use_cache=True)",
            "model.gradient_checkpointing_disable()  # training leaves it on, and it switches the cache off",
        ),
        tradeoff="The cache takes memory in proportion to batch x tokens.",
        prediction=predict_between(evidence, [Saving(decode_ns=spent * (1 - share)) for share in stays]),
    )


def _stays(evidence: Evidence, computed: Ints, forward: Ints, sequences: int) -> tuple[float, float, float]:
    """The share of these steps that stays where each computes one position a sequence: likely, least, most.

    That lies far outside of what was seen: the ridge says from where on a step gets no shorter. What steps
    of other lengths show not to depend on the length stays in any case.
    """
    least, likely, most = ridge(evidence)
    if not len(computed):
        return UNSEEN
    positions, step = float(computed.mean()), float(forward.mean())
    fixed = 0.0
    if computed.max() >= LEAST_RANGE * computed.min():
        points = np.stack([np.ones(len(computed)), computed.astype(np.float64)], axis=1)
        fixed = min(1.0, float(non_negative(points, forward.astype(np.float64))[0]) / max(step, 1.0))
    floor, usual, ceiling = (left(each, positions, sequences) for each in (least, likely, most))
    return max(fixed, usual), floor, max(fixed, ceiling)


def many_sequences(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Beams or several answers a prompt multiply the work of each step."""
    copies = [_copies(r) for r in evidence.requests]
    affected = [r for r, n in zip(evidence.requests, copies, strict=True) if n > 1]
    decode = sum(r.phase_ns(Phase.DECODE) for r in affected)
    if not affected or evidence.share(decode) < OWNS / 2:
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
    return Finding(
        cause=Cause.MANY_SEQUENCES,
        phase=Phase.DECODE,
        ns=decode,
        share=evidence.share(decode),
        confidence=confidence,
        evidence=(
            f"{n:.0f} {'beams' if beams else 'sequences'} a prompt in {count(len(affected), 'request')}",
            f"with one, a step would take {percent(factor)} of what it takes, {source}",
            f"beside the forward pass: {seconds(evidence.part_ns(Part.UPDATE, Phase.DECODE))} moving caches,"
            f" {seconds(evidence.part_ns(Part.LOGITS, Phase.DECODE))} scoring",
        ),
        recommendation="Use fewer beams." if beams else "Ask for fewer sequences a prompt.",
        commands=evidence.typed(
            Cause.MANY_SEQUENCES,
            (
                ("model.generate(**inputs, num_beams=1)",)
                if beams
                else ("model.generate(**inputs, num_return_sequences=1)",)
            ),
        ),
        tradeoff="Fewer candidates: check the quality of answers with one.",
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


def _tokens_within(requests: list[RequestBreakdown], target_s: float) -> int:
    """Output tokens that end within the target, at the median request's rate."""
    first = statistics.median(r.ttft_ns or 0 for r in requests)
    rate = statistics.median(r.tpot_ns or 0.0 for r in requests)
    return math.floor(1 + (target_s * 1e9 - first) / rate)


def _after(evidence: Evidence, request: RequestBreakdown, keep: int) -> float:
    """Decode time of a request after its first `keep` tokens: from its own steps, else at its mean rate."""
    longest = request.request.longest_output or 0
    if longest <= keep:
        return 0.0
    decode = float(request.phase_ns(Phase.DECODE))
    rows = decode_rows_of(evidence, request)
    if rows is None or request.request.yields or len(rows) < keep:
        return decode * (longest - keep) / (longest - 1)
    last = request.request.last_token_ns
    return float((last or 0) - int(evidence.table.end_ns[rows.begin + max(0, keep - 2)]))


def _copies(request: RequestBreakdown) -> int:
    settings = request.request.settings
    stated = [settings.get("num_beams"), settings.get("num_return_sequences")]
    return max([n for n in stated if isinstance(n, int)], default=1)
