"""Waits that more slots or memory would not end: too much load, a small budget, a grammar."""

from __future__ import annotations

import math

from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.table.answer import Answer, Gain, Tier, candidate, modelled, tried, without
from phasetrace.advise.table.contrast import like_with_like
from phasetrace.advise.table.queue import OFFERED, OWNS, Queue, at_cap, beyond_reach, memory_full, waits
from phasetrace.advise.table.rules.queue import kv_full, slots_full
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

PASSING = (
    "enable_chunked_prefill",
    "chunked_prefill",
    "max_num_partial_prefills",
    "long_prefill_token_threshold",
)
FLAT = 0.6  # of the growth of load is seen in throughput: less, and the engine is saturated
GROWS = 2.5  # times: latency of a saturated engine, against the same at less load
MUCH_LONGER = 4.0  # times the prompt: what waits behind it is short beside it
LONGER = 2.0  # times a whole prompt's expected prefill


def overload(view: View) -> Answer:
    """More is offered than can be served: the queue never drains."""
    s, g = view.subject, view.subject.group
    if view.goal is Goal.TPOT:
        return None
    said: list[str] = []
    share = 0.0
    queue = waits(view, s)
    if g.request_rate and g.request_throughput and g.request_rate >= OFFERED * g.request_throughput:
        said.append(f"{g.request_rate:g} requests a second are offered and {g.request_throughput:g} served")
        share = max(share, 1 - g.request_throughput / g.request_rate, queue.share if queue else 0.0)
    for name in ("request_rate", "concurrency"):
        pair = next(
            (
                p
                for p in view.pairs
                if p.worse is s and name in p.differs and _saturates(p.worse, p.better, name)
            ),
            None,
        )
        if pair is not None:
            low, high = getattr(pair.better.group, name), getattr(pair.worse.group, name)
            said.append(
                f"from {low:g} to {high:g} {name.replace('_', ' ')}, latency grows"
                f" {times(_latency(pair.worse, pair.better) or 0)}"
                " and throughput hardly"
            )
            share = max(share, 0.5)
    backlog = g.waiting is not None and g.running is not None and g.waiting >= 2 * max(1.0, g.running)
    if not at_cap(s) and (memory_full(s) is False or (s.cap is not None and not memory_full(s))):
        backlog = False  # slots and memory are free: what waits waits for something else than capacity
    if queue is not None and backlog:
        said.append(f"{g.waiting:,.0f} requests wait behind {g.running:,.0f}")
        share = max(share, queue.share)
    if not said:
        return None
    bounded = s.cap is not None or memory_full(s) is not None  # else it may wait for just one of these
    said += [queue.said] if queue and queue.said not in said else []
    return candidate(
        view,
        Cause.OVERLOAD,
        Tier.FAULT if beyond_reach(s) or not any(rule(view) for rule in OTHERS) else Tier.BOUND,
        tuple(said),
        "Offer less or add capacity: scale out (replicas), limit admission (shed or delay load at the"
        " door), or"
        " make each request"
        " cheaper; scheduler settings only move the wait.",
        tradeoff="Replicas cost devices; shedding refuses requests.",
        weight=share,
        seconds=queue.seconds if queue else None,
        confidence="high" if len(said) > 1 and g.running is not None and bounded else "medium",
    )


def token_budget(view: View) -> Answer:
    """The tokens of a step are used up, by a small budget or by a long prompt at the head."""
    s, g = view.subject, view.subject.group
    pair = view.contrast(*BUDGETS)
    fix = (
        "Raise the token budget of a step (max_num_batched_tokens), or let short prompts pass long"
        " ones (chunked prefill, a limit on long partial prefills)."
    )
    trade = "A larger budget helps TTFT and throughput, and makes each gap between tokens longer (ITL)."
    if pair is not None and (pair.worse.budget or 0) < (pair.better.budget or 0) and not pair.worse.alone:
        if view.goal in (Goal.TTFT, Goal.THROUGHPUT, Goal.E2E):
            sure = None if pair.worse.budget is not None else "medium"  # an unstated one is some default
            return tried(
                view, Cause.TOKEN_BUDGET, pair, "a smaller token budget", fix, trade, confidence=sure
            )
    pair = view.contrast(*PASSING)
    if pair is not None and pair.goal is Goal.TTFT and not pair.worse.alone:
        return tried(view, Cause.TOKEN_BUDGET, pair, "prompts read in one piece", fix, trade)
    ahead = view.contrast("prefilling_concurrently")
    if ahead is not None and ahead.goal is Goal.TTFT and (ahead.worse.group.prefilling_concurrently or 0) > 0:
        return tried(view, Cause.TOKEN_BUDGET, ahead, "prefilling_concurrently", fix, trade)
    if view.goal is Goal.TPOT:
        return None
    behind = _behind_long_prompts(view)
    if behind is not None:
        return candidate(
            view,
            Cause.TOKEN_BUDGET,
            Tier.FAULT,
            (
                behind[2].said,
                f"prompts of {behind[1].group.prompt_tokens:,.0f} tokens are read in front of"
                f" those of {behind[0].group.prompt_tokens:,.0f}",
            ),
            fix,
            tradeoff=trade,
            weight=behind[2].share,
            seconds=behind[2].seconds,
            setting=behind[0],
        )
    if s.alone:
        return None
    queue = waits(view, s)
    if queue is None or at_cap(s) or memory_full(s):
        return None
    if (
        s.budget
        and g.prompt_tokens
        and s.budget < LONGER * g.prompt_tokens
        and (g.kv_cache_usage is not None or g.running is not None)
    ):
        return candidate(
            view,
            Cause.TOKEN_BUDGET,
            Tier.FAULT,
            (
                queue.said,
                f"a step computes {s.budget:,.0f} tokens, a prompt has {g.prompt_tokens:,.0f}",
                "neither slots nor the KV cache are used up",
            ),
            fix,
            tradeoff=trade,
            weight=queue.share,
            seconds=queue.seconds,
            gain=_larger_budget(s),
        )
    return None


def _behind_long_prompts(view: View) -> tuple[Setting, Setting, Queue] | None:
    """Short prompts that wait, beside others many times as long, while slots and memory are free."""
    for short in view.settings:
        queue = waits(view, short)
        if queue is None or short.alone or at_cap(short) or memory_full(short):
            continue
        for long in view.settings:
            if (long.group.prompt_tokens or 0) >= MUCH_LONGER * (short.group.prompt_tokens or math.inf):
                return short, long, queue
    return None


OTHERS = (slots_full, kv_full, token_budget)  # waits that have a remedy of their own


def grammar_compile(view: View) -> Answer:
    """A grammar or schema is compiled before the request may run."""
    s, g = view.subject, view.subject.group
    fix = (
        "Compile each grammar once: cache compiled grammars, reuse the same schema text, compile"
        " them before serving, or use a faster structured-output backend (xgrammar)."
    )
    total = s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
    if g.grammar_compile_s and g.grammar_compile_s >= OWNS * (total or s.ttft or g.grammar_compile_s):
        spent = g.grammar_compile_s
        return candidate(
            view,
            Cause.GRAMMAR_COMPILE,
            Tier.MEASURED,
            (
                f"compiling the grammar takes {seconds(spent * 1e9)},"
                f" {percent(min(1, spent / (total or spent)))} of the time",
            ),
            fix,
            gain=without(spent, max(total or 0, spent)),
            weight=min(1, spent / (total or spent)),
            seconds=spent,
        )
    pair = view.contrast("grammar")
    first = next((p for p in view.pairs if "order" in p.differs and p.worse.group.order == "first"), None)
    if first is not None and first.worse.group.grammar and first.better.group.grammar:
        return tried(view, Cause.GRAMMAR_COMPILE, first, "a grammar seen for the first time (order)", fix)
    if pair is None and g.grammar and g.queue_s and s.cap is None and (s.alone or s.width is None):
        rest = max(s.ttft or 0.0, g.queue_s)
        if g.queue_s >= 0.5 * rest and view.goal is not Goal.TPOT:
            return candidate(
                view,
                Cause.GRAMMAR_COMPILE,
                Tier.FAULT,
                (
                    f"a grammar is set, and the request waits {seconds(g.queue_s * 1e9)} in the queue",
                    "no other load is told that it could wait for",
                ),
                fix,
                gain=None,
                weight=g.queue_s / rest,
                seconds=g.queue_s,
            )
    if pair is None or not pair.worse.group.grammar:
        return None
    ttft = _ratio(pair.worse.ttft, pair.better.ttft)
    tpot = _ratio(pair.worse.group.tpot_s, pair.better.group.tpot_s)
    if ttft is not None and ttft >= 1.5 and (tpot is None or tpot < 1.25) and view.goal is not Goal.TPOT:
        return tried(view, Cause.GRAMMAR_COMPILE, pair, "a grammar", fix)
    if "order" in pair.differs and pair.worse.group.order == "first":
        return tried(view, Cause.GRAMMAR_COMPILE, pair, "a new grammar", fix)
    return None


def _larger_budget(s: Setting) -> Gain | None:
    """A wait shrinks as the work of each request does: by what full chunks save of its prefill."""
    if s.new_tokens is None or s.budget is None:
        return None
    now, then = s.prefill_with(s.new_tokens, s.budget), s.prefill_with(s.new_tokens)
    return modelled(now / then) if now and then and now >= 1.2 * then else None


def _saturates(worse: Setting, better: Setting, name: str) -> bool:
    low, high = getattr(better.group, name), getattr(worse.group, name)
    if not low or not high or high < low * 1.25:
        return False
    served = _ratio(worse.throughput, better.throughput)
    slower = _latency(worse, better)
    if slower is None or slower < GROWS:
        return False
    return served is not None and served - 1 < FLAT * (high / low - 1)


def _latency(worse: Setting, better: Setting) -> float | None:
    known = [
        like_with_like(worse, better, Goal.TTFT),
        like_with_like(worse, better, Goal.E2E),
        _ratio(worse.group.queue_s, better.group.queue_s),
    ]
    return max((v for v in known if v is not None), default=None)


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other and other > 0 else None
