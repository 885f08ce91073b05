"""Waiting to be scheduled, and for what: a slot, a KV block, the step's token budget, less load."""

from __future__ import annotations

import math
from dataclasses import dataclass

from phasetrace.advise.knobs import CAPS
from phasetrace.advise.table.answer import Answer, Gain, Tier, candidate, modelled, tried, without
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OWNS = 0.3  # of the goal's metric
REDONE = 0.05  # of the tokens computed again: what preemption costs, before the waits
EVICTED = 0.05  # of the requests
AT_CAP = 0.85  # of the cap runs: a sampled mean lies below a cap that binds whenever it is sampled
FULL = 0.85  # of the KV cache: engines keep blocks back, and a gauge is sampled between steps
FITTED = 0.7  # of the sequences that fit by their mean length: some are longer, and blocks are not filled
MEMORY = (
    "gpu_memory_utilization",
    "mem_fraction_static",
    "kv_cache_tokens",
    "num_gpu_blocks_override",
    "max_model_len",
    "max_total_tokens",
    "kv_cache_memory_gb",
)
_ROOM = (
    "Make room in the KV cache: a larger memory share for it (gpu_memory_utilization), an 8-bit (fp8)"
    " KV cache, a smaller maximum length, quantised weights, or more devices or replicas."
)
ROOM = 1.5  # times the cap fits beside the weights: then memory is no reason for it
MORE_SLOTS = 4  # times the cap: two doublings, a usual next try
OFFERED = 1.25  # times what is served: both are counted within 10 %
CROWDED = 4.0  # times those that run, or may: twice the memory would not take in half of those who wait
CROWD = 2.0  # times the sequences that fit: with more open, slots are not all that is missing
WAITING = 1.0  # request in the queue on average


@dataclass(frozen=True, slots=True)
class Queue:
    """What is known of the wait of a group: its share of the goal's metric, and why it is believed."""

    share: float
    seconds: float | None
    said: str


def evicts(s: Setting) -> bool:
    """Whether so many requests lost their place that this is what costs; a few are a cache that is full."""
    g = s.group
    few = max(1.0, EVICTED * (g.requests or 0))
    return (g.recomputed_token_share or 0) >= REDONE or (g.preemptions or 0) >= few


def waits(view: View, s: Setting) -> Queue | None:
    """Whether requests wait in the engine's queue enough to matter for the goal."""
    g = s.group
    queue = g.queue_s if g.queue_s is not None else g.queue_p95_s
    whole = s.e2e if view.goal in (Goal.E2E, Goal.THROUGHPUT) else s.ttft
    if queue is not None:
        whole = max(whole or 0.0, queue)
        if whole <= 0 or queue < OWNS * whole:
            return None
        return Queue(
            queue / whole,
            queue,
            f"requests wait {seconds(queue * 1e9)}, {percent(queue / whole)} of {_of(view)}",
        )
    if g.waiting is not None and g.waiting >= WAITING:
        running = g.running or s.width or g.waiting
        share = g.waiting / (g.waiting + running)
        return Queue(share, None, f"{g.waiting:,.0f} requests wait while {running:,.0f} run")
    if s.cap and g.concurrency and g.concurrency >= s.cap * 1.25 and g.running is None:
        share = 1 - s.cap / g.concurrency
        return Queue(
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


def slots_full(view: View) -> Answer:
    """The cap on sequences binds while there is room."""
    pair = view.contrast(*CAPS)
    s = view.subject
    fix = (
        "Raise the cap on concurrent sequences"
        f" (max_num_seqs){f' from {s.cap:,.0f}' if s.cap else ''}: more slots"
        " share each weight read."
    )
    trade = "Each token takes a little longer, and the KV cache fills sooner."
    if pair is not None and (pair.worse.cap or 0) < (pair.better.cap or 0) and view.goal is not Goal.TPOT:
        return tried(view, Cause.SLOTS_FULL, pair, "a smaller cap on sequences", fix, trade)
    if view.goal is Goal.TPOT or s.cap is None or not at_cap(s) or memory_full(s):
        return None
    queue = waits(view, s)
    if queue is None and view.goal is not Goal.THROUGHPUT:
        return None
    if memory_full(s) is None and s.fit is not None and s.fit < ROOM * s.cap:
        return None
    said = [f"{(s.group.running or s.cap):,.0f} sequences run and the cap is {s.cap:,.0f}"]
    said += [queue.said] if queue else []
    if s.group.kv_cache_usage is not None:
        said.append(f"{percent(s.group.kv_cache_usage)} of the KV cache is used: there is room")
    gain: Gain | None
    if view.goal is Goal.THROUGHPUT:
        gain = modelled(_more(s, MORE_SLOTS), 0.4)
        said.append(f"{MORE_SLOTS} times as many would give about {times(gain.ratio)} of the throughput")
    else:
        whole = s.metric(view.goal)
        gain = without(queue.seconds, whole) if queue and queue.seconds and whole else None
    weight = max(queue.share if queue else 0.0, 1 - 1 / gain.ratio if gain else 0.0)
    return candidate(
        view,
        Cause.SLOTS_FULL,
        Tier.BOUND if beyond_reach(s) else Tier.FAULT,
        tuple(said),
        fix,
        tradeoff=trade,
        gain=gain,
        weight=weight,
        seconds=queue.seconds if queue else None,
        confidence="high" if _room_for_all(s) else "medium",
    )


def _room_for_all(s: Setting) -> bool:
    """Whether slots alone would take in most of those who wait, by the KV cache that is left."""
    g = s.group
    if g.kv_cache_usage is None or g.running is None:
        return False
    return g.running + (g.waiting or 0) <= CROWD * g.running / max(g.kv_cache_usage, 1e-3)


def _crowded(s: Setting) -> bool:
    """So many wait that memory for twice as many would not take them in."""
    return (s.group.waiting or 0) > CROWDED * (s.group.running or s.cap or math.inf)


def _too_much(s: Setting, served: float = 1.0) -> bool:
    """More is offered than so many times what is served."""
    offered, throughput = s.group.request_rate, s.group.request_throughput
    return bool(offered and throughput and offered > OFFERED * served * throughput)


def beyond_reach(s: Setting) -> bool:
    """More is offered than would be served with every KV block in use: more slots only move the wait."""
    g = s.group
    return bool(g.kv_cache_usage) and _too_much(s, _more(s, max(1.0, 1 / (g.kv_cache_usage or 1.0))))


def kv_full(view: View) -> Answer:
    """No KV blocks to admit the next request."""
    s, g = view.subject, view.subject.group
    queue = waits(view, s)
    if view.goal is Goal.TPOT or evicts(s):
        return None
    pair = view.contrast(*MEMORY)
    if pair is not None and (memory_full(pair.worse) or memory_full(pair.worse) is None):
        return tried(view, Cause.KV_FULL, pair, "less room for the KV cache", _ROOM)
    used_up = g.kv_cache_usage is not None and g.kv_cache_usage >= FULL
    if not (memory_full(s) and (queue or used_up)) or (at_cap(s) and not used_up):
        return None
    said = [
        f"{percent(g.kv_cache_usage)} of the KV cache is used"
        if g.kv_cache_usage is not None
        else "the requests that are open need more KV cache than there is"
    ]
    said += [queue.said] if queue else []
    if s.cap and g.running:
        said.append(f"{g.running:,.0f} run where {s.cap:,.0f} may: slots are not what is missing")
    return candidate(
        view,
        Cause.KV_FULL,
        Tier.BOUND if at_cap(s) and _too_much(s) else Tier.FAULT,  # slots are used up, too
        tuple(said),
        _ROOM,
        tradeoff="An 8-bit cache may cost quality; less memory stays for other uses of the device.",
        gain=without(queue.seconds, s.metric(view.goal))
        if queue and view.goal is not Goal.THROUGHPUT
        else None,
        weight=max(queue.share if queue else 0.3, 0.3),
        seconds=queue.seconds if queue else None,
        confidence="high" if used_up and queue and not (at_cap(s) or _crowded(s)) else "medium",
    )


def _more(s: Setting, factor: float) -> float:
    """Throughput with so many times the sequences, by the model of a step where the machine is known."""
    width = s.width or s.cap or 1
    now, then = s.step_with(batch=width), s.step_with(batch=width * factor)
    if now and then:
        return factor * now / then
    return float(factor * (1 - SEQUENCE_COST) ** math.log2(factor))


SEQUENCE_COST = (
    0.07  # of a step, for each doubling of a small batch (3 to 8 % in the measurements of `expected`)
)
