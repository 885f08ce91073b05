"""Waits that more slots or memory would not end: too much load, the tokens of a step, a grammar."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict, predict_between, predict_rates
from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.rules.queue import MOSTLY, SHARE, UNTOLD
from phasetrace.advise.waiting import backlog_left, scheduler_ns, slowed
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Finding, Goal, NotEnoughData, Part, Phase, RequestBreakdown, Wait
from phasetrace.semconv import Cause

EARLY = 4  # one request in so many, the first that came: they found an engine that was not busy yet
QUICKEST = 20  # one request in so many
CLEARLY = 1.5  # times what is served comes: no count of either is so far off
SPREAD = 4.0  # times the median: prompts that much longer hold the others back
READ_BOUND = 0.5  # of a full step is fixed: then its budget is too small for the device, whoever waits
LARGER = 4.0  # times the budget: two doublings, a usual next try
PASSING = 0.7  # of their wait for a long prompt that short ones are spared: their own reading stays
CACHED = 0.9  # of compiling is saved where a grammar was compiled before


def overload(evidence: Evidence) -> Finding | NotEnoughData | None:
    """More is offered than the engine can serve, however many run at a time: the queue never drains."""
    load = evidence.offered
    if load is None or not load.too_much:
        return None
    left = backlog_left(evidence)
    if left <= 0:
        return None  # more at a time would serve what is offered: another rule says so
    priced = evidence.shared is not None and evidence.queue is not None  # what more at a time would serve
    early = evidence.requests[: max(1, len(evidence.requests) // EARLY)]
    queue = evidence.phase_ns(Phase.QUEUE)
    return Finding(
        cause=Cause.OVERLOAD,
        phase=Phase.QUEUE,
        ns=queue,
        share=evidence.share(queue),
        confidence="high" if load.served * CLEARLY <= load.rate and priced else "medium",
        evidence=(
            f"{load.rate:.3g} requests a second came and {load.served:.3g} were served, while they came",
            f"{load.grown:.2g} times as many were open in the last quarter of that as in the first: the wait"
            " grows for as long as the load lasts",
            *slowed(early, evidence.requests[-len(early) :]),
        ),
        recommendation=(
            f"Offer less or add capacity: about {load.rate / load.served:.1f} times as much (replicas), or"
            " limit admission (shed or delay load at the door); scheduler settings only move the wait."
        ),
        commands=evidence.typed(Cause.OVERLOAD),
        tradeoff="Replicas cost devices; shedding refuses requests.",
        prediction=predict_rates(evidence, [load.rate / load.served, 1.0, 1.1 * load.rate / load.served])
        if evidence.goal is Goal.THROUGHPUT
        else predict_between(
            evidence,
            [
                _as_early(evidence, early),
                _as_early(evidence, early, by=0.7),
                _as_early(evidence, _quickest(evidence.requests)),
            ],
        ),
    )


def _quickest(requests: tuple[RequestBreakdown, ...]) -> tuple[RequestBreakdown, ...]:
    """Those that had the engine to themselves, as far as any had."""
    return tuple(sorted(requests, key=lambda r: r.ttft_ns or r.e2e_ns)[: max(1, len(requests) // QUICKEST)])


def _as_early(evidence: Evidence, early: tuple[RequestBreakdown, ...], by: float = 1.0) -> Saving:
    """All requests as those, that found the engine free."""
    first = statistics.fmean(r.ttft_ns or 0 for r in early)
    token = statistics.fmean(r.tpot_ns or 0 for r in early)
    written = [(r, (r.request.longest_output or 1) - 1) for r in evidence.requests if r.tpot_ns]
    return Saving(
        first_ns=by * sum(max(0.0, (r.ttft_ns or 0) - first) for r in evidence.requests),
        decode_ns=by * sum(max(0.0, (r.tpot_ns or 0) - token) * n for r, n in written),
    )


def token_budget(evidence: Evidence) -> Finding | NotEnoughData | None:
    """The tokens of a step are used up by prompts, and those behind them wait."""
    queue, held = evidence.phase_ns(Phase.QUEUE), evidence.queue
    if not evidence.whole_ns or queue < SHARE * evidence.whole_ns:
        return None
    if held is None:
        return None if evidence.stepped else NotEnoughData(Cause.TOKEN_BUDGET, UNTOLD + evidence.by_run)
    if held.share(Wait.BUDGET) < MOSTLY:
        return None
    budget, costs = evidence.knob(*BUDGETS), evidence.prompt_costs
    if budget is None or costs is None:
        return NotEnoughData(Cause.TOKEN_BUDGET, "the token budget of a step, and what a prompt token costs")
    fixed, each = costs
    if fixed >= READ_BOUND * (fixed + each * budget):
        return None  # each step reads the weights for a few tokens: `small-prefill-chunk` says so
    waited = scheduler_ns(evidence) * held.share(Wait.BUDGET)
    lengths = sorted(r.new_prompt_tokens or 0 for r in evidence.requests)
    middle = lengths[len(lengths) // 2]
    short = [r for r in evidence.requests if (r.new_prompt_tokens or 0) <= middle]
    behind = sum(r.phase_ns(Phase.QUEUE) for r in short) if lengths[-1] >= SPREAD * max(middle, 1) else 0
    passing = PASSING * min(waited, behind)
    larger = waited * (1 - (fixed / (LARGER * budget) + each) / (fixed / budget + each))
    return Finding(
        cause=Cause.TOKEN_BUDGET,
        phase=Phase.QUEUE,
        ns=int(waited),
        share=evidence.share(waited),
        confidence="high",
        evidence=(
            f"{percent(queue / evidence.whole_ns)} of what counts is spent in the queue:"
            f" {percent(held.share(Wait.BUDGET))} of that while a step's {budget:,.0f} tokens were used up",
            f"prompts have {middle:,} new tokens (median), the longest {lengths[-1]:,}",
            f"a step of {budget:,.0f} tokens takes {seconds(fixed + each * budget)},"
            f" {percent(fixed / (fixed + each * budget))} of that however few they are",
        ),
        recommendation=(
            "Let short prompts pass long ones: limit how much of a long prompt a step reads"
            " (long_prefill_token_threshold), or raise the token budget (max_num_batched_tokens)."
            if passing >= larger
            else f"Raise the token budget of a step (max_num_batched_tokens) from {budget:,.0f}."
        ),
        commands=_budget_commands(evidence, passing >= larger, budget),
        tradeoff="Long prompts take longer, or every gap between tokens (ITL) does.",
        prediction=predict_between(
            evidence, [Saving(first_ns=max(passing, larger) * by) for by in (1.0, 0.4, 1.2)]
        ),
    )


def _budget_commands(evidence: Evidence, pass_by: bool, budget: float) -> tuple[str, ...]:
    if evidence.engine != "vllm":
        return evidence.typed(Cause.TOKEN_BUDGET)
    larger = f"--max-num-batched-tokens {int(budget * LARGER)}"
    return (f"--long-prefill-token-threshold {max(1, int(budget) // 2)}", larger) if pass_by else (larger,)


def grammar_compile(evidence: Evidence) -> Finding | NotEnoughData | None:
    """A grammar or schema is compiled before the request may run."""
    structured = [r for r in evidence.requests if r.request.settings.get("structured")]
    measured = [r.request.grammar_ns for r in structured if r.request.grammar_ns is not None]
    spent = float(sum(measured))
    if not measured and evidence.queue is not None:
        spent = scheduler_ns(evidence) * evidence.queue.share(Wait.GRAMMAR)
    plain = [r for r in evidence.requests if not r.request.settings.get("structured")]
    in_front = sum(_front(r) for r in structured) - len(structured) * _usual_front(plain)
    if in_front >= spent:
        spent += max(0.0, in_front)
    if not structured or not evidence.whole_ns or spent < SHARE * evidence.whole_ns:
        return None
    return Finding(
        cause=Cause.GRAMMAR_COMPILE,
        phase=Phase.QUEUE,
        ns=int(spent),
        share=evidence.share(spent),
        confidence="high" if measured or plain else "medium",
        evidence=(
            f"{count(len(structured), 'request')} asked for structured output; their grammars took"
            f" {seconds(spent)}, {percent(spent / evidence.whole_ns)} of what counts",
            *(
                (f"{seconds(statistics.median(measured))} (median) pass until a grammar is compiled",)
                if measured
                else ()
            ),
        ),
        recommendation=(
            "Compile each grammar once: send the same schema text each time so that the compiled grammar is"
            " found again, send each schema once before serving, or use a faster backend (xgrammar)."
        ),
        commands=evidence.typed(Cause.GRAMMAR_COMPILE),
        tradeoff="Compiled grammars stay in memory; other backends support other parts of JSON schema.",
        prediction=predict(
            evidence, Saving(first_ns=spent * CACHED, least=0.5 - doubt(measured) / 2, most=1 / CACHED)
        ),
    )


def _front(request: RequestBreakdown) -> float:
    return request.phase_ns(Phase.FRONTEND) - request.part_ns(Phase.FRONTEND, Part.TOKENIZE)


def _usual_front(plain: list[RequestBreakdown]) -> float:
    """Of requests without a grammar; infinite without any, so that nothing is laid at the grammar's door."""
    return statistics.median(_front(r) for r in plain) if plain else float("inf")
