"""One order for all findings: how a cause is known, then the share of the goal that its fix takes away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from phasetrace.model import Finding

WORTH = (
    0.15  # of the goal's metric: DESIGN.md section 8; what less brings is lost in the noise of most systems
)
# A guess must win clearly before it is put above what is known: `low` findings count half.
TRUST = {"high": 1.0, "medium": 0.85, "low": 0.5}


class Tier(IntEnum):
    """How a rule knows; a better kind of evidence stands before a worse one, whatever the gain."""

    DEFECT = 0  # the numbers contradict each other
    MEASURED = 1  # the time itself was measured, or the user tried it with and without
    FAULT = 2  # a setting, and times that fit what physics says of it
    BOUND = 3  # the device does what it can for what is asked: this stands behind anything that is wrong
    SUSPICION = 4  # nothing else fits


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding, how it is known, and the share of the goal's metric that it is about."""

    finding: Finding
    tier: Tier
    weight: float


def rank(found: Iterable[Candidate]) -> list[Candidate]:
    """The better kind of evidence first, then the larger share of the goal; what is not worth it last."""
    return sorted(
        map(without_loss, found),
        key=lambda c: (
            c.weight < WORTH,
            c.tier,
            -c.weight * TRUST[c.finding.confidence],
            -c.finding.share,
            c.finding.cause,
        ),
    )


def without_loss(candidate: Candidate) -> Candidate:
    """What would make the goal worse is promised as no gain; it is said beside the cause, which is true."""
    finding, promised = candidate.finding, candidate.finding.prediction
    if promised is None or promised.ratio >= 1:
        return candidate
    said = f"what is recommended here would make this goal worse: {promised.ratio:.2g}x"
    return replace(candidate, finding=replace(finding, prediction=None, evidence=(*finding.evidence, said)))
