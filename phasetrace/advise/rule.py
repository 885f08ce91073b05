"""A rule is one cause: its words, and what shows it in recorded steps and in a table of numbers.

The functions of a rule look and judge. `Rule` makes the finding of what they return, in the rule's words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import won
from phasetrace.advise.ranking import Candidate, Tier
from phasetrace.advise.table.told import SIXTEEN_BITS, Told, predicted
from phasetrace.advise.table.view import View
from phasetrace.model import Finding, NotEnoughData, Prediction
from phasetrace.semconv import Cause

Commands = Mapping[
    str, tuple[str, ...]
]  # engine -> what to type there; under `other` for any engine not named
SURE = {Tier.DEFECT: "high", Tier.MEASURED: "high", Tier.FAULT: "medium", Tier.BOUND: "medium"}


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of a cause wherever it is found: what to change, what that costs, and what to type."""

    fix: str
    tradeoff: str
    commands: Commands = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Seen:
    """A cause in recorded steps: its time, and what shows it; words where they say more than the rule's."""

    ns: float  # summed over the diagnosed requests
    evidence: tuple[str | None, ...]
    confidence: str = "high"
    prediction: Prediction | None = None
    fix: str = ""
    tradeoff: str = ""
    commands: Commands = field(default_factory=dict)
    tier: Tier = Tier.MEASURED
    share: float | None = None  # where it is not that of `ns` in the diagnosed requests' time


@dataclass(frozen=True, slots=True)
class Measure:
    """The recording does not tell; what to measure, so that it does."""

    what: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A cause, what is said of it, and how it shows. Without `in_steps`, a recording is told as a table."""

    cause: Cause
    words: Words
    in_steps: Callable[[Evidence], Seen | Measure | None] | None
    in_table: Callable[[View], Told | None]

    def on_steps(self, evidence: Evidence) -> Candidate | NotEnoughData | None:
        """What recorded steps say of the cause; None where they do not show it."""
        seen = self.in_steps(evidence) if self.in_steps else None
        if seen is None:
            return None
        if isinstance(seen, Measure):
            return NotEnoughData(self.cause, seen.what)
        finding = self._finding(
            seen,
            evidence.engine,
            ns=int(seen.ns),
            share=evidence.share(seen.ns) if seen.share is None else seen.share,
            confidence=seen.confidence,
            prediction=seen.prediction,
        )
        return Candidate(finding, seen.tier, 1.0 if seen.tier is Tier.DEFECT else won(seen.prediction))

    def on_table(self, view: View) -> Candidate | None:
        """What a table says of the cause; None where it does not show it."""
        told = self.in_table(view)
        if told is None:
            return None
        setting = told.setting or view.subject
        promised = predicted(setting, told.goal or view.goal, told.gain)
        weight = won(promised) if told.weight is None else told.weight
        whole = setting.e2e or setting.ttft
        spent = told.seconds if told.seconds is not None else weight * (whole or 0.0)
        confidence = told.confidence or SURE.get(told.tier, "low")
        if setting.assumed and told.tier >= Tier.FAULT and told.confidence == "high":
            confidence = "medium"
        finding = self._finding(
            told,
            view.engine,
            ns=round(spent * 1e9),
            share=min(1.0, spent / whole if whole else weight),
            confidence=confidence,
            prediction=promised,
            also=(SIXTEEN_BITS,) if setting.assumed and told.tier is Tier.BOUND else (),
        )
        return Candidate(finding, told.tier, weight)

    def _finding(
        self,
        shown: Seen | Told,
        engine: str,
        *,
        ns: int,
        share: float,
        confidence: str,
        prediction: Prediction | None,
        also: tuple[str, ...] = (),
    ) -> Finding:
        typed = {**self.words.commands, **shown.commands}
        return Finding(
            cause=self.cause,
            phase=self.cause.phase,
            ns=ns,
            share=share,
            confidence=confidence,
            evidence=tuple(said for said in (*shown.evidence, *also) if said),
            recommendation=shown.fix or self.words.fix,
            commands=typed.get(engine, typed.get("other", ())),
            tradeoff=shown.tradeoff or self.words.tradeoff,
            prediction=prediction,
        )
