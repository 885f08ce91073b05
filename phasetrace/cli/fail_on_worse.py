"""When `compare` exits with 1: `--fail-on worse`, `worse=10%`, `ttft,itl=20%`, `any`, `preemption`."""

from __future__ import annotations

import math
from typing import NamedTuple

import click

from phasetrace.cli.percent import percent
from phasetrace.model import Comparison, Fate, Goal, MetricChange, Word
from phasetrace.semconv import Cause

GOAL, ANY = "worse", "any"
METRICS = (*(goal.value for goal in Goal), "itl", "failed")
ROUNDING = 1e-9  # 1.1 times is 10 % more, whatever floats make of it
HOW = (
    f"--fail-on takes worse, any, a metric ({', '.join(METRICS)}), each with or without =10%, and causes;"
    " `phasetrace explain` lists those"
)


class Limit(NamedTuple):
    """What must not be worse, or must not come, and by how much."""

    name: str
    by: float = 0.0


class FailOnWorse(click.ParamType[tuple[Limit, ...]]):
    """A list of metrics with the worsening that is accepted, and of causes."""

    name = "fail-on"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Limit, ...]:
        """Read it from what the user wrote."""
        found = []
        for item in str(value).split(","):
            name, given, by = (part.strip() for part in item.partition("="))
            share = percent(by) if given else 0.0
            cause = name in {each.value for each in Cause} and not given
            if share is None or share < 0 or not (cause or name in (GOAL, ANY, *METRICS)):
                self.fail(f"{item.strip()!r} is none of these; {HOW}", param, ctx)
            found.append(Limit(name, share))
        return tuple(found)


def fails(c: Comparison, limits: tuple[Limit, ...]) -> bool:
    """Whether the change is beyond what the user accepts."""
    return any(_fails(c, limit) for limit in limits)


def _fails(c: Comparison, limit: Limit) -> bool:
    if any(f.cause == limit.name and f.fate is Fate.CAME for f in c.findings):
        return True
    return any(m.word is Word.WORSE and _worse_by(m) >= limit.by - ROUNDING for m in _meant(c, limit.name))


def _meant(c: Comparison, name: str) -> list[MetricChange]:
    """Those of the limit; failed requests count whatever the metric, since no time is told of them."""
    if name == GOAL:
        return [m for m in c.fair if m is c.of_goal() or m.metric == "failed"]
    return [m for m in c.fair if name == ANY or m.metric.partition("_")[0] in (name, "failed")]


def _worse_by(m: MetricChange) -> float:
    """How much more time it takes, or how much more fail; of throughput, how much less there is."""
    if m.metric.endswith("tok_s"):
        return 1 - m.ratio
    return 1 / m.ratio - 1 if m.ratio > 0 else math.inf
