"""Whom a table's group is served with: how many, how uneven its tokens come, what others' prompts take."""

from __future__ import annotations

from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View

NEIGHBOURS = 1.5  # requests at once: with fewer, no other's prompt can stretch a step


def at_once(s: Setting) -> float:
    """Requests that are served at once."""
    g = s.group
    return max((v for v in (g.running, g.batch, g.concurrency, g.request_rate) if v is not None), default=0.0)


def slow_end(s: Setting) -> tuple[float, float] | None:
    """Seconds between two tokens at the slow end, and in the middle; None where one is unknown."""
    g = s.group
    middle, tail = g.itl_p50_s or g.tpot_s, g.itl_p99_s or g.itl_p95_s or g.itl_max_s
    return (tail, middle) if middle and tail else None


def spikiness(s: Setting) -> float:
    """The slow end of ITL over its middle."""
    tail, middle = slow_end(s) or (0.0, 1.0)
    return tail / middle


def prefill_load(view: View, s: Setting) -> tuple[float, float] | None:
    """The share of the device's time that prompts take while these decode, and the prefill of one alone.

    Requests begin at the rate at which they end: those running over the time that one runs (Little's law).
    """
    g = s.group
    if g.running is None and g.concurrency is None and g.request_rate is None:
        return None  # a static batch: nobody else comes while it decodes
    running = g.running or g.batch or s.width
    alone = next((x.prefill for x in view.settings if x.alone and x.prefill), None)
    each = alone or (s.prefill_with(s.new_tokens) if s.new_tokens else None)
    rate = g.request_throughput
    if rate is None and running and s.decode:
        rate = running / (s.decode + (s.prefill or 0.0))
    if not rate or not each or not running or running < NEIGHBOURS:
        return None
    return rate * each, each
