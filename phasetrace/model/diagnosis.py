"""What is diagnosed: findings with evidence, fix and predicted gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from phasetrace.model.breakdown import Breakdown
from phasetrace.model.table import Goal


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a fix will bring. Seconds, or tokens a second for throughput; `ratio` > 1 is better."""

    metric: str  # ttft_s | tpot_s | e2e_s | throughput_tok_s
    before: float
    after: float
    low: float
    high: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause with its evidence and its fix. `ns` is summed over the diagnosed requests."""

    cause: str  # an id of semconv.Cause
    phase: str  # a Phase, "host" or "none"
    ns: int
    share: float  # of the diagnosed requests' time
    confidence: str  # high | medium | low
    evidence: tuple[str, ...]
    recommendation: str
    commands: tuple[str, ...] = ()
    tradeoff: str = ""
    prediction: Prediction | None = None


@dataclass(frozen=True, slots=True)
class NotEnoughData:
    """A rule could not decide; `measure` says what would let it."""

    cause: str
    measure: str


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a machine reaches: measured, or stated with a trace."""

    bandwidth_bytes_s: float
    flops_s: float | None = None
    source: str = "measured"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict: findings ranked by the time they win on the goal, the first one is the answer."""

    cause: str
    verdict: str
    goal: Goal
    breakdown: Breakdown
    findings: tuple[Finding, ...]
    not_enough: tuple[NotEnoughData, ...] = ()
    slo: Mapping[str, float] | None = None  # metric -> seconds
    ceilings: Ceilings | None = None  # of the machine, where they were given
