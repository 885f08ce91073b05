"""A table's queue: whether requests wait, and whether slots, the KV cache or all capacity are used up."""

from __future__ import annotations

import math
from dataclasses import dataclass

from phasetrace.advise.ranking import WORTH
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.model import Goal

REDONE = 0.05  # of the tokens computed again: what preemption costs, before the waits
EVICTED = 0.05  # of the requests
AT_CAP = 0.85  # of the cap runs: a sampled mean lies below a cap that binds whenever it is sampled
FULL = 0.85  # of the KV cache: engines keep blocks back, and a gauge is sampled between steps
FITTED = 0.7  # of the sequences that fit by their mean length: some are longer, and blocks are not filled
MORE_SLOTS = 4  # times the cap: two doublings, a usual next try
OFFERED = 1.25  # times what is served: both are counted within 10 %
WAITING = 1.0  # request in the queue on average
SEQUENCE_COST = (
    0.07  # of a step, for each doubling of a small batch (3 to 8 % in the measurements of `expected`)
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What is known of the wait of a group: its share of the goal's metric, and why it is believed."""

    share: float
    seconds: float | None
    said: str


def evicts(s: Setting) -> bool:
    """Whether so many requests lost their place that this is what costs; a few are a cache that is full."""
    g = s.group
    few = max(1.0, EVICTED * (g.requests or 0))
    return (g.recomputed_token_share or 0) >= REDONE or (g.preemptions or 0) >= few


def waits(view: View, s: Setting) -> Waiting | None:
    """Whether requests wait in the engine's queue enough to matter for the goal."""
    g = s.group
    queue = g.queue_s if g.queue_s is not None else g.queue_p95_s
    whole = s.e2e if view.goal in (Goal.E2E, Goal.THROUGHPUT) else s.ttft
    if queue is not None:
        whole = max(whole or 0.0, queue)
        if whole <= 0 or queue < WORTH * whole:
            return None
        return Waiting(
            queue / whole,
            queue,
            f"requests wait {seconds(queue * 1e9)}, {percent(queue / whole)} of {_of(view)}",
        )
    if g.waiting is not None and g.waiting >= WAITING:
        running = g.running or s.width or g.waiting
        share = g.waiting / (g.waiting + running)
        return Waiting(share, None, f"{g.waiting:,.0f} requests wait while {running:,.0f} run")
    if s.cap and g.concurrency and g.concurrency >= s.cap * 1.25 and g.running is None:
        share = 1 - s.cap / g.concurrency
        return Waiting(
            share, None, f"the client keeps {g.concurrency:,.0f} requests open and {s.cap:,.0f} may run"
        )
    return None


def _of(view: View) -> str:
    return "the first token's time" if view.goal is Goal.TTFT else "the request"


def at_cap(s: Setting) -> bool:
    """As many sequences run as may."""
    running = s.group.running
    if running is None and s.group.concurrency and s.group.waiting is not None:
        running = max(0.0, s.group.concurrency - s.group.waiting)
    if (
        running is None
        and s.group.batch is None
        and s.group.concurrency
        and s.cap
        and s.group.concurrency > s.cap
    ):
        running = s.cap
    return s.cap is not None and running is not None and running >= AT_CAP * s.cap


def memory_full(s: Setting) -> bool | None:
    """Whether the KV cache is full: as the engine says, else by what fits; None where nothing tells."""
    g = s.group
    if g.kv_cache_usage is not None:
        return g.kv_cache_usage >= FULL
    wanted = max((v for v in (g.concurrency, (g.running or 0) + (g.waiting or 0)) if v), default=None)
    tokens = (g.prompt_tokens or 0) + (g.output_tokens or g.max_tokens or 0)
    room = s.knob("kv_cache_tokens", "max_total_tokens", "num_kv_tokens")
    fits = room / tokens if room and tokens else s.fit
    if fits is None or not wanted:
        return None
    if g.running is not None:
        return g.running >= FITTED * fits
    wanted = min(wanted, s.cap or wanted)
    return wanted > fits * 1.1


def too_much(s: Setting, served: float = 1.0) -> bool:
    """More is offered than so many times what is served."""
    offered, throughput = s.group.request_rate, s.group.request_throughput
    return bool(offered and throughput and offered > OFFERED * served * throughput)


def beyond_reach(s: Setting) -> bool:
    """More is offered than would be served with every KV block in use: more slots only move the wait."""
    g = s.group
    return bool(g.kv_cache_usage) and too_much(s, more_throughput(s, max(1.0, 1 / (g.kv_cache_usage or 1.0))))


def more_throughput(s: Setting, factor: float) -> float:
    """Throughput with so many times the sequences, by the model of a step where the machine is known."""
    width = s.width or s.cap or 1
    now, then = s.step_with(batch=width), s.step_with(batch=width * factor)
    if now and then:
        return factor * now / then
    return float(factor * (1 - SEQUENCE_COST) ** math.log2(factor))
