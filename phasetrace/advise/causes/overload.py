"""More load is offered than the engine can serve at all: the queue never drains."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes import kv_full, slots_full, token_budget
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict_between, predict_rates
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.contrast import like_with_like, over
from phasetrace.advise.table.queue import OFFERED, at_cap, beyond_reach, memory_full, waits
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told
from phasetrace.advise.table.view import View
from phasetrace.advise.waiting import backlog_left, slowed
from phasetrace.advise.words import times
from phasetrace.model import Goal, Phase, RequestBreakdown
from phasetrace.semconv import Cause

FIX = (
    "Offer less or add capacity: {}, limit admission (shed or delay load at the door), or make each request"
    " cheaper; scheduler settings only move the wait."
)
WORDS = Words(
    fix=FIX.format("scale out (replicas)"),
    tradeoff="Replicas cost devices; shedding refuses requests.",
    commands={},
)
EARLY = 4  # one request in so many, the first that came: they found an engine that was not busy yet
QUICKEST = 20  # one request in so many
CLEARLY = 1.5  # times what is served comes: no count of either is so far off
FLAT = 0.6  # of the growth of load is seen in throughput: less, and the engine is saturated
GROWS = 2.5  # times: latency of a saturated engine, against the same at less load
OTHERS = (slots_full.in_table, kv_full.in_table, token_budget.in_table)  # waits with a remedy of their own


def in_steps(evidence: Evidence) -> Seen | None:
    """Requests come faster than they are served, ever more are open, and no more at a time would help."""
    load = evidence.offered
    if load is None or not load.too_much:
        return None
    left = backlog_left(evidence)
    if left <= 0:
        return None  # more at a time would serve what is offered: another rule says so
    priced = evidence.shared is not None and evidence.queue is not None  # what more at a time would serve
    early = evidence.requests[: max(1, len(evidence.requests) // EARLY)]
    queue = evidence.phase_ns(Phase.QUEUE)
    return Seen(
        queue,
        evidence=(
            f"{load.rate:.3g} requests a second came and {load.served:.3g} were served, while they came",
            f"{load.grown:.2g} times as many were open in the last quarter of that as in the first: the wait"
            " grows for as long as the load lasts",
            *slowed(early, evidence.requests[-len(early) :]),
        ),
        confidence="high" if load.served * CLEARLY <= load.rate and priced else "medium",
        fix=FIX.format(f"about {load.rate / load.served:.1f} times as much (replicas)"),
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


def in_table(view: View) -> Told | None:
    """By the rates or the backlog that are told, or since more load brings latency and no throughput."""
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
    return Told(
        Tier.FAULT if beyond_reach(s) or not any(rule(view) for rule in OTHERS) else Tier.BOUND,
        tuple(said),
        weight=share,
        seconds=queue.seconds if queue else None,
        confidence="high" if len(said) > 1 and g.running is not None and bounded else "medium",
    )


def _saturates(worse: Setting, better: Setting, name: str) -> bool:
    low, high = getattr(better.group, name), getattr(worse.group, name)
    if not low or not high or high < low * 1.25:
        return False
    served = over(worse.throughput, better.throughput)
    slower = _latency(worse, better)
    if slower is None or slower < GROWS:
        return False
    return served is not None and served - 1 < FLAT * (high / low - 1)


def _latency(worse: Setting, better: Setting) -> float | None:
    known = [
        like_with_like(worse, better, Goal.TTFT),
        like_with_like(worse, better, Goal.E2E),
        over(worse.group.queue_s, better.group.queue_s),
    ]
    return max((v for v in known if v is not None), default=None)


RULE = Rule(Cause.OVERLOAD, WORDS, in_steps, in_table)
