"""Waiting to be scheduled, and for what: a slot, a KV block, the step's token budget, less load."""

from __future__ import annotations

import math

from phasetrace.advise.knobs import CAPS
from phasetrace.advise.table.answer import Answer, Gain, Tier, candidate, modelled, tried, without
from phasetrace.advise.table.queue import FULL, MORE_SLOTS, at_cap, beyond_reach, evicts, memory_full, waits
from phasetrace.advise.table.queue import more_throughput as _more
from phasetrace.advise.table.queue import too_much as _too_much
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

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
CROWDED = 4.0  # times those that run, or may: twice the memory would not take in half of those who wait
CROWD = 2.0  # times the sequences that fit: with more open, slots are not all that is missing


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
