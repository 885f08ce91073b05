"""What is promised of a fix is a gain."""

from dataclasses import replace

from phasetrace.advise.ranking import Candidate, Tier, rank
from phasetrace.model import Finding, Phase, Prediction
from phasetrace.semconv import Cause

FULL = Finding(Cause.SLOTS_FULL, Phase.QUEUE, 10, 0.5, "high", ("8 of 8 ran",), "Raise the cap.")


def promised(ratio: float) -> Candidate:
    gain = Prediction("e2e_s", 1.0, 1 / ratio, 1 / ratio, 1 / ratio, ratio)
    return Candidate(replace(FULL, prediction=gain), Tier.MEASURED, 0.5)


def test_a_fix_that_makes_the_goal_worse_is_said_to_and_promises_nothing() -> None:
    (found,) = rank([promised(0.69)])
    assert found.finding.prediction is None
    assert found.finding.evidence == (
        "8 of 8 ran",
        "what is recommended here would make this goal worse: 0.69x",
    )


def test_a_gain_stays() -> None:
    assert rank([promised(2.0)]) == [promised(2.0)]
