"""What a rule for tables answers, and how its gain is put into numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from phasetrace.advise.gain import prediction, won
from phasetrace.advise.knobs import commands
from phasetrace.advise.ranking import Candidate, Tier
from phasetrace.advise.table.contrast import MATTERS, Pair
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.model import Finding, Goal, NotEnoughData, Prediction
from phasetrace.semconv import Cause

Answer = Candidate | NotEnoughData | None
Rule = Callable[[View], Answer]

__all__ = [
    "Candidate",
    "Tier",
    "Answer",
    "Rule",
    "Gain",
    "candidate",
    "measured",
    "modelled",
    "tried",
    "without",
]

LEAST = 0.151  # of the goal: the one thing that a clean experiment changed is named, however little it shows
MEASURED_SPREAD = 0.1  # of a ratio that was measured on both sides: what repeated runs differ by
MODEL_SPREAD = (
    0.25  # of a ratio that comes from the model of a step: its error on measured systems, times two
)

SIXTEEN_BITS = "16-bit weights are assumed, since no dtype or quantisation was told"


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times better the goal's metric becomes, at least and at most."""

    ratio: float
    low: float
    high: float


def measured(ratio: float) -> Gain:
    """A ratio that the table itself shows."""
    return Gain(ratio, max(1.0, ratio * (1 - MEASURED_SPREAD)), ratio * (1 + MEASURED_SPREAD))


def modelled(ratio: float, spread: float = MODEL_SPREAD) -> Gain:
    """A ratio from the model of a step; the part above one is what may be wrong."""
    more = max(0.0, ratio - 1)
    return Gain(ratio, 1 + more * (1 - spread), 1 + more * (1 + spread))


def without(part_s: float | None, whole_s: float | None, most: float = 0.95) -> Gain | None:
    """Taking a part out of a whole; half of it may stay."""
    if part_s is None or not whole_s or part_s <= 0:
        return None
    share = min(most, part_s / whole_s)
    return Gain(1 / (1 - share), 1 / (1 - share / 2), 1 / (1 - min(most, share * 1.05)))


def predicted(setting: Setting, goal: Goal, gain: Gain | None) -> Prediction | None:
    """The gain in the goal's own unit; None where the metric was not measured or nothing is gained."""
    before = setting.metric(goal)
    if gain is None or not before or before <= 0 or gain.ratio <= 1:
        return None
    if goal is Goal.THROUGHPUT:
        return prediction(goal, before, before * gain.ratio, before * gain.low, before * gain.high)
    return prediction(goal, before, before / gain.ratio, before / gain.high, before / gain.low)


def candidate(
    view: View,
    cause: Cause,
    tier: Tier,
    evidence: tuple[str, ...],
    recommendation: str,
    *,
    tradeoff: str = "",
    gain: Gain | None = None,
    goal: Goal | None = None,
    weight: float | None = None,
    seconds: float | None = None,
    confidence: str | None = None,
    setting: Setting | None = None,
) -> Candidate:
    """A finding about a group, with the knobs of the engine at hand."""
    setting, goal = setting or view.subject, goal or view.goal
    promised = predicted(setting, goal, gain)
    whole = setting.e2e or setting.ttft
    share = won(promised) if weight is None else weight
    seconds = share * whole if seconds is None and whole else seconds or 0.0
    sure = {Tier.DEFECT: "high", Tier.MEASURED: "high", Tier.FAULT: "medium", Tier.BOUND: "medium"}
    if setting.assumed and tier >= Tier.FAULT:
        confidence = "medium" if confidence == "high" else confidence
        evidence = (*evidence, SIXTEEN_BITS) if tier is Tier.BOUND else evidence
    finding = Finding(
        cause=cause,
        phase=cause.phase,
        ns=round(seconds * 1e9),
        share=min(1.0, seconds / whole) if whole else min(1.0, share),
        confidence=confidence or sure.get(tier, "low"),
        evidence=evidence,
        recommendation=recommendation,
        commands=commands(cause, view.engine),
        tradeoff=tradeoff,
        prediction=promised,
    )
    return Candidate(finding, tier, share)


def tried(
    view: View,
    cause: Cause,
    pair: Pair,
    what: str,
    recommendation: str,
    tradeoff: str = "",
    sure: bool = True,
    confidence: str | None = None,
) -> Candidate:
    """A finding that the user has measured already, with and without."""
    others = [name for name in pair.differs if name not in what.replace("`", " ").split()]
    clean = len(pair.differs) <= 1
    said = (
        f"{pair.worse.name} with {what} has {pair.ratio:.3g}x the {METRIC_WORDS[pair.goal]} of"
        f" {pair.better.name}"
    )
    if pair.goal is Goal.THROUGHPUT:
        said = (
            f"{pair.worse.name} with {what} gives 1/{pair.ratio:.3g} of the throughput of {pair.better.name}"
        )
    also = (f"they differ in {', '.join(others)} too",) if not clean and others else ()
    tier = Tier.MEASURED if sure else Tier.FAULT
    return candidate(
        view,
        cause,
        Tier.SUSPICION if view.slight and pair.ratio < MATTERS else tier,
        (said, *also),
        recommendation,
        tradeoff=tradeoff,
        gain=measured(pair.ratio),
        goal=pair.goal,
        setting=pair.worse,
        weight=max(1 - 1 / pair.ratio, LEAST) if clean else 1 - 1 / pair.ratio,
        confidence="low" if pair.ratio < MATTERS else confidence or ("high" if clean else "medium"),
    )


METRIC_WORDS = {Goal.TTFT: "TTFT", Goal.TPOT: "TPOT", Goal.E2E: "e2e", Goal.THROUGHPUT: "throughput"}
