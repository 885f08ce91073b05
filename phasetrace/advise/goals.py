"""What the user wants better: stated as a goal or an SLO, else what the trace suggests, said aloud."""

from __future__ import annotations

import math
from collections.abc import Mapping

from phasetrace.advise.words import count
from phasetrace.advise.workload import Workload
from phasetrace.errors import UsageError
from phasetrace.model import Breakdown, Goal

# Half a second is where a person notices a wait in a chat; in a spoken dialogue, turns follow each other
# within 0.2 s.
PRESETS: Mapping[str, Mapping[str, float]] = {"chat": {"ttft": 0.5}, "voice": {"ttft": 0.2}}
METRICS = ("ttft", "tpot", "e2e")


def parse_slo(text: str) -> dict[str, float]:
    """`chat`, `voice`, or `ttft=0.5,tpot=0.05`: metric -> seconds that its p95 may take."""
    if text in PRESETS:
        return dict(PRESETS[text])
    found: dict[str, float] = {}
    for item in text.split(","):
        metric, _, limit = item.strip().partition("=")
        try:
            seconds = float(limit)
        except ValueError:
            seconds = math.nan
        if metric not in METRICS or not 0 < seconds < math.inf:
            raise UsageError(
                f"cannot read the SLO {text!r}: say chat, voice, or limits in seconds such as ttft=0.5,e2e=10"
            )
        found[metric] = seconds
    return found


def violations(breakdown: Breakdown, slo: Mapping[str, float] | None) -> dict[str, float]:
    """Metric -> how many times over its limit the p95 is; only those over it."""
    over: dict[str, float] = {}
    for metric, limit in (slo or {}).items():
        measured = breakdown.metrics.get(f"{metric}_ns")
        if measured is not None and measured.p95 > limit * 1e9:
            over[metric] = measured.p95 / (limit * 1e9)
    return over


def unmeasured(breakdown: Breakdown, slo: Mapping[str, float] | None) -> list[str]:
    """Metrics of the SLO that the recording does not hold."""
    return [metric for metric in slo or {} if f"{metric}_ns" not in breakdown.metrics]


def choose_goal(
    breakdown: Breakdown, load: Workload | None, goal: Goal | None, slo: Mapping[str, float] | None
) -> tuple[Goal, str]:
    """The goal, and in words why it is that one where the user did not say."""
    if goal is not None:
        return goal, ""
    if slo:
        over = violations(breakdown, slo)
        worst = max(over, key=lambda metric: over[metric]) if over else next(iter(slo))
        return Goal(worst), ""
    if load is None:
        return Goal.E2E, ""
    if load.contending:
        return Goal.THROUGHPUT, f"Judged by throughput, since {load.concurrency:.1f} calls ran at a time."
    if load.loop:
        return (
            Goal.THROUGHPUT,
            f"Judged by throughput, since {count(load.requests, 'prompt')} ran one by one.",
        )
    if load.batched:
        rows = f"{load.prompts_per_call:.0f}"
        return Goal.THROUGHPUT, f"Judged by throughput, since calls hold {rows} prompts each."
    return Goal.E2E, "Judged by end-to-end time, since no goal was given."
