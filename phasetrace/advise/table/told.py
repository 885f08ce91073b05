"""What a rule finds in a table, and how its gain is put into numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from phasetrace.advise.gain import prediction
from phasetrace.advise.ranking import Tier
from phasetrace.advise.table.contrast import MATTERS, Pair
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.model import Goal, Prediction

LEAST = 0.151  # of the goal: the one thing that a clean experiment changed is named, however little it shows
MEASURED_SPREAD = 0.1  # of a ratio that was measured on both sides: what repeated runs differ by
MODEL_SPREAD = (
    0.25  # of a ratio that comes from the model of a step: its error on measured systems, times two
)

SIXTEEN_BITS = "16-bit weights are assumed, since no dtype or quantisation was told"
METRIC_WORDS = {Goal.TTFT: "TTFT", Goal.TPOT: "TPOT", Goal.E2E: "e2e", Goal.THROUGHPUT: "throughput"}


@dataclass(frozen=True, slots=True)
class Gain:
    """How many times better the goal's metric becomes, at least and at most."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Told:
    """A cause in a table: how it is known and what shows it. What is left out follows from the rest."""

    tier: Tier
    evidence: tuple[str | None, ...]
    gain: Gain | None = None
    weight: float | None = None  # of the goal's metric; None: what the gain takes away
    seconds: float | None = None  # None: as much of a request as `weight` says
    confidence: str | None = None  # None: as the tier has it
    setting: Setting | None = None  # None: the group in question
    goal: Goal | None = None  # None: the view's
    fix: str = ""
    tradeoff: str = ""
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


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


def tried(
    view: View,
    pair: Pair,
    what: str,
    *,
    fix: str = "",
    tradeoff: str = "",
    sure: bool = True,
    confidence: str | None = None,
) -> Told:
    """What the user has measured already, with and without."""
    others = [name for name in pair.differs if name not in what.replace("`", " ").split()]
    clean = len(pair.differs) <= 1
    lost = 1 - 1 / pair.ratio
    said = (
        f"{pair.worse.name} with {what} gives 1/{pair.ratio:.3g} of the throughput of {pair.better.name}"
        if pair.goal is Goal.THROUGHPUT
        else f"{pair.worse.name} with {what} has {pair.ratio:.3g}x the {METRIC_WORDS[pair.goal]} of"
        f" {pair.better.name}"
    )
    tier = Tier.MEASURED if sure else Tier.FAULT
    return Told(
        Tier.SUSPICION if view.slight and pair.ratio < MATTERS else tier,
        (said, *((f"they differ in {', '.join(others)} too",) if not clean and others else ())),
        gain=measured(pair.ratio),
        weight=max(lost, LEAST) if clean else lost,
        confidence="low" if pair.ratio < MATTERS else confidence or ("high" if clean else "medium"),
        setting=pair.worse,
        goal=pair.goal,
        fix=fix,
        tradeoff=tradeoff,
    )
