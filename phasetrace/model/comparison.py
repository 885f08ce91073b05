"""What changed between two recordings: metrics and whether noise explains them, phases, causes, settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from phasetrace.model.diagnosis import Diagnosis, Finding
from phasetrace.model.terms import Part, Phase


class Word(StrEnum):
    """What is said of a difference."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no difference seen"
    FEW = "too few requests"
    MACHINE = "may be the machine"  # one run had so much less of it that this explains the difference
    UNLIKE = "not alike"  # the requests differ so much that no like can be compared with like


class Statistic(StrEnum):
    """What of a metric is compared."""

    MEAN = "mean"
    P50 = "p50"
    P95 = "p95"
    EQUAL_LENGTH = "mean at equal length"  # AFTER's answers cut, or made longer, to BEFORE's length
    SHARE = "share"


class Matched(StrEnum):
    """How like was compared with like."""

    PAIRS = "pairs"  # the same prompts, by length and order
    PROMPTS = "prompts"  # the same prompts, put into other requests: all with all
    CLASSES = "classes"  # requests of about the same prompt and answer length, in BEFORE's proportions
    ALL = "all"  # all with all: lengths are unknown, or nothing is alike


@dataclass(frozen=True, slots=True)
class MetricChange:
    """A metric before and after. Times are nanoseconds, throughput is tokens a second.

    `ratio` is how many times better, so that more than 1 is better; `low` and `high` bound it with 95 %.
    """

    metric: str  # ttft_ns | tpot_ns | itl_ns | e2e_ns | throughput_tok_s | failed
    statistic: Statistic
    before: float
    after: float
    ratio: float
    low: float | None
    high: float | None
    word: Word
    enough: int | None = (
        None  # requests of which a difference that matters would show; where they were too few
    )


@dataclass(frozen=True, slots=True)
class PartChange:
    """A part of a phase: nanoseconds a request."""

    part: Part
    before_ns: float
    after_ns: float

    @property
    def difference_ns(self) -> float:
        """More than 0 where it takes longer now."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A phase: nanoseconds a request; those of `parts` sum to them, where there are any."""

    phase: Phase
    before_ns: float
    after_ns: float
    parts: tuple[PartChange, ...] = ()

    @property
    def difference_ns(self) -> float:
        """More than 0 where it takes longer now."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True, slots=True)
class Mix:
    """What was asked for on average, and how it was made comparable; None: unknown."""

    matched: Matched
    compared: tuple[int, int]  # diagnosed requests before and after that have their like in the other run
    requests: tuple[int, int]  # diagnosed requests
    prompt_tokens: tuple[float, float] | None = None
    output_tokens: tuple[float, float] | None = None
    prompts: tuple[float, float] | None = None  # in a request
    cap_changed: bool = False  # the most tokens that an answer may have was set differently
    load_ratio: float | None = None  # times as many requests came, and ran at once; None where that is alike


@dataclass(frozen=True, slots=True)
class Difference:
    """Something else that is not the same in both runs; None where one does not know it."""

    name: str
    before: bool | int | float | str | None
    after: bool | int | float | str | None


class Fate(StrEnum):
    """What became of a finding."""

    GONE = "gone"
    STAYED = "stayed"
    CAME = "came"


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A cause that was found before, after, or both; and what its fix brought, where that was predicted."""

    cause: str
    fate: Fate
    before: Finding | None
    after: Finding | None
    measured: float | None = None  # in the unit of the prediction before
    at_share: float | None = None  # the same with as much of the machine as before, where that differs
    inside: bool | None = None  # of the predicted interval: one of these, or what lies between them


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two diagnoses for one goal, side by side."""

    before: Diagnosis
    after: Diagnosis
    mix: Mix
    metrics: tuple[MetricChange, ...]
    runs_differ: float  # share by which intervals allow for two runs of one program
    phases: tuple[PhaseChange, ...] = ()  # the largest difference first
    findings: tuple[FindingChange, ...] = ()
    knobs: tuple[Difference, ...] = ()  # versions, model, device, settings of engine and requests
    measured: tuple[Difference, ...] = ()  # load, caches, machine: what was not set
    starved: tuple[float, float] | None = None  # of the time in which threads wanted a CPU: without one
    widened: bool = False  # intervals allow for what the machine gave to each run
    names: tuple[str, str] = ("BEFORE", "AFTER")

    @property
    def fair(self) -> tuple[MetricChange, ...]:
        """The metrics without those means that were told at equal length, too."""
        equal = {m.metric for m in self.metrics if m.statistic is Statistic.EQUAL_LENGTH}
        return tuple(m for m in self.metrics if m.statistic is not Statistic.MEAN or m.metric not in equal)

    def of_goal(self) -> MetricChange | None:
        """The mean of the metric that the user wants better, like compared with like."""
        means = (m for m in self.fair if m.statistic in (Statistic.MEAN, Statistic.EQUAL_LENGTH))
        return next((m for m in means if m.metric.partition("_")[0] == self.before.goal), None)

    @property
    def difference_ns(self) -> float:
        """By how much e2e grew, a request on average: the sum over the phases."""
        return sum_of(self.phases)


def sum_of(changes: Iterable[PhaseChange | PartChange]) -> float:
    """The differences together."""
    return sum(change.difference_ns for change in changes)
