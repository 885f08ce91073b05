"""Whether more requests failed than chance explains."""

from __future__ import annotations

from math import exp, lgamma

from phasetrace.model import Breakdown, MetricChange, RequestStatus, Statistic, Word

CHANCE = 0.05


def failure_change(before: Breakdown, after: Breakdown) -> MetricChange | None:
    """The share of requests that failed; None where none did, nor was cut off by an error."""
    failed = [sum(r.status is RequestStatus.FAILED for r in b.failed) for b in (before, after)]
    ended = [len(b.requests) + len(b.warm_up) + n for b, n in zip((before, after), failed, strict=True)]
    if not any(failed) or not all(ended):
        return None
    one, other = (n / of for n, of in zip(failed, ended, strict=True))
    ratio = one / other if other else float("inf")
    more = other > one
    found = by_chance(failed, ended) if more else by_chance(failed[::-1], ended[::-1])
    word = Word.SAME if found > CHANCE / 2 else Word.WORSE if more else Word.BETTER
    return MetricChange("failed", Statistic.SHARE, one, other, ratio, None, None, word)


def by_chance(failed: list[int], ended: list[int]) -> float:
    """The chance that so many or more of those that failed are of the second run (Fisher 1922, one-sided)."""
    every, chosen = sum(failed), ended[1]
    whole = _ways(sum(ended), every)
    most = min(every, chosen)
    return sum(
        exp(_ways(chosen, n) + _ways(ended[0], every - n) - whole)
        for n in range(failed[1], most + 1)
        if every - n <= ended[0]
    )


def _ways(of: int, chosen: int) -> float:
    """The logarithm of how many ways there are to choose so many."""
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)
