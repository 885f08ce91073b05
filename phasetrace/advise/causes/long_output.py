"""The number of output tokens owns the time; the rate is what the device can do."""

from __future__ import annotations

import math
import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict, prediction
from phasetrace.advise.ranking import Tier
from phasetrace.advise.recompute import decode_rows_of
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.told import Told, modelled
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Goal, Phase, RequestBreakdown
from phasetrace.semconv import Cause

FIX = (
    "Ask for fewer output tokens{} (a shorter answer, max_tokens to limit the output length); stream, so that"
    " the wait is felt less."
)
WORDS = Words(
    fix=FIX.format(""),
    tradeoff="Answers that need more tokens are cut; ask for brevity, and keep the cap as the bound.",
    commands={
        "vllm": ("SamplingParams(max_tokens=N)",),
        "sglang": ('{"max_new_tokens": N}',),
        "tgi": ('{"max_new_tokens": N}',),
        "llama.cpp": ('{"n_predict": N}',),
        "transformers": ("model.generate(**inputs, max_new_tokens=N)",),
        "other": ('"max_tokens": N  # in the request',),
    },
)
STREAM = "model.generate(**inputs, streamer=TextIteratorStreamer(tokenizer))"
STREAMED = '"stream": true  # in the request, or stream=True in the client'
OWNS = 0.5  # of the time: decode owns it when all else together is less
CLEARLY = 0.7  # of the time, where nobody said what should become better: nothing else may be worth a look
LONG = 512  # tokens, then: twice a usual chat answer; with a stated goal any length counts
QUARTER = 0.25  # of the output kept, where no target says how much: an answer in a paragraph, not a page
MARGIN = 0.9  # of a target: what is aimed at where only means are told, so that their spread still meets it
SLOW = 2.5  # times a well set-up engine's step: the rate is not what the device can do


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Decode owns the time of requests with many tokens; or nothing is streamed, and the goal is TTFT."""
    decode = evidence.phase_ns(Phase.DECODE)
    written = [r for r in evidence.requests if (r.request.longest_output or 0) > 1 and r.tpot_ns]
    if evidence.goal is Goal.TTFT:
        return _not_streamed(evidence)
    if evidence.goal is not Goal.E2E or evidence.share(decode) < (OWNS if evidence.goal_stated else CLEARLY):
        return None
    if not written:
        return Measure("how many tokens each request wrote")
    lengths = [r.request.longest_output or 0 for r in written]
    typical = statistics.median(lengths)
    target = (evidence.slo or {}).get("e2e")
    if typical < LONG and not evidence.goal_stated:
        return None
    keep = int(typical * QUARTER) if target is None else _tokens_within(written, target)
    if keep < 1:
        return None  # the first token alone misses the target: the output is not what to cut
    saved = sum(_after(evidence, request, keep) for request in written)
    rates = [r.tpot_ns or 0.0 for r in written]
    spread = doubt(rates)
    return Seen(
        decode,
        evidence=(
            f"decode is {percent(evidence.share(decode))} of the time: {typical:,.0f} tokens a request"
            f" (median) at {seconds(statistics.median(rates))} each",
            f"prefill is {percent(evidence.share(evidence.phase_ns(Phase.PREFILL)))}:"
            " a shorter prompt wins at most that",
            f"{keep:,} tokens at this rate fit the target of {seconds(target * 1e9)}"
            if target is not None
            else None,
        ),
        confidence="high" if evidence.goal_stated else "medium",
        fix=_fewer(keep, typical),
        commands={
            "vllm": (f"SamplingParams(max_tokens={keep})  # the cap also bounds the slowest request",),
            "transformers": (
                f"model.generate(**inputs, max_new_tokens={keep})  # also bounds the slowest request",
                f'prompt += " Answer in at most {max(1, round(keep * 0.7, -1)):,.0f} words."',
                f"{STREAM}  # first words at once",
            ),
            "other": (f'"max_tokens": {keep}  # in the request',),
        },
        prediction=predict(
            evidence, Saving(decode_ns=saved, least=1 - spread / 2, most=1 + min(spread / 2, 0.02))
        ),
        tier=Tier.BOUND,
    )


def _not_streamed(evidence: Evidence) -> Seen | None:
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
    return Seen(
        waited,
        evidence=(
            f"{percent(waited / evidence.whole_ns)} of the time to first tokens is the rest of the answer:"
            f" {count(len(held), 'answer')} of {typical:,.0f} tokens (median) came in one piece",
            f"the engine had the first token after {seconds(engine)} (median)",
        ),
        fix=f"Stream the answer: the first token is there after {seconds(engine)}. Where that cannot be,"
        " write fewer tokens (max_tokens).",
        commands={evidence.engine: (STREAM if evidence.engine == "transformers" else STREAMED,)},
        tradeoff="A stream is many small messages: client and proxies have to pass each one on at once.",
        # What is left was measured; that handing over each token costs something was not.
        prediction=prediction(Goal.TTFT, before, after, after * (1 - spread), after * (1 + 2 * spread)),
    )


def _handed_over_whole(request: RequestBreakdown) -> bool:
    return request.in_one_piece and (request.request.longest_output or 0) > 1


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


def in_table(view: View) -> Told | None:
    """Decode owns the request, and a step is no slower than the device allows."""
    s, g = view.subject, view.subject.group
    written = g.output_tokens
    if view.goal is not Goal.E2E or not written or written < 2 or s.decode is None or not s.e2e:
        return None
    share = s.decode / s.e2e
    if share < OWNS or s.crawls or (s.slower is not None and s.slower > SLOW):
        return None
    if not view.goal_stated and (share < CLEARLY or written < LONG):
        return None
    rate = s.tpot or s.decode / (written - 1)
    target = (view.slo or {}).get("e2e")
    rest = max(0.0, s.e2e - s.decode)
    keep = written * QUARTER
    said = [
        f"decode is {percent(share)} of the request: {written:,.0f} tokens at {seconds(rate * 1e9)} each",
    ]
    if s.prefill is not None:
        said.append(
            f"prefill is {percent(s.prefill / s.e2e)}: a prompt half as long would save about"
            f" {seconds(s.prefill / 2 * 1e9)}"
        )
    if target is not None:
        if target * MARGIN <= rest:
            return None
        keep = min(written, (target * MARGIN - rest) / rate)
    keep = max(1.0, _round(keep))
    after = rest + keep * rate
    said.append(
        f"about {keep:,.0f} tokens at the same rate give {seconds(after * 1e9)}; a cap (max_tokens)"
        " bounds the slowest request"
    )
    if s.ttft is not None:
        said.append(f"streaming shows the first token after {seconds(s.ttft * 1e9)}")
    return Told(
        Tier.BOUND,
        tuple(said),
        fix=_fewer(keep, written),
        gain=modelled(s.e2e / after, 0.1),
        weight=1 - after / s.e2e,
        seconds=s.decode,
        confidence="high" if view.slo else "medium",
    )


def _fewer(keep: float, written: float) -> str:
    return FIX.format(f": about {keep:,.0f} instead of {written:,.0f}")


def _round(tokens: float) -> float:
    """Two digits: an estimate is no more exact."""
    size = 10.0 ** max(0, math.floor(math.log10(max(tokens, 1))) - 1)
    return math.ceil(tokens / size) * size


RULE = Rule(Cause.LONG_OUTPUT, WORDS, in_steps, in_table)
