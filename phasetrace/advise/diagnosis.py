"""From a breakdown to the verdict: ask every rule, rank by what is won, and say when nothing is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from phasetrace.advise import goals
from phasetrace.advise.evidence import Evidence, gather
from phasetrace.advise.gain import won
from phasetrace.advise.rules import RULES
from phasetrace.advise.verdict import healthy, unknown, verdict
from phasetrace.advise.words import percent
from phasetrace.model import Breakdown, Ceilings, Diagnosis, Finding, Goal, NotEnoughData, Phase
from phasetrace.semconv import Cause

WORTH = 0.15  # of the goal metric: DESIGN.md section 8; what less brings is lost in the noise of most systems
UNEXPLAINED = 0.05  # of the time: DESIGN.md section 8; with more, the trace does not explain itself
# A guess must win clearly before it is put above what is known: `low` findings count half.
TRUST = {"high": 1.0, "medium": 0.9, "low": 0.5}
# Bounds say that the device does what it can for what is asked: they stand behind anything that is wrong.
BOUNDS = frozenset({Cause.LONG_OUTPUT, Cause.LONG_PROMPT, Cause.BANDWIDTH_BOUND})


def diagnose(
    breakdown: Breakdown,
    goal: Goal | None = None,
    slo: Mapping[str, float] | None = None,
    ceilings: Ceilings | None = None,
) -> Diagnosis:
    """The verdict on a breakdown, for a goal or an SLO (metric -> seconds) where the user stated one."""
    evidence = gather(breakdown, ceilings)
    chosen, why = goals.choose_goal(breakdown, evidence.load, goal, slo)
    evidence = replace(evidence, goal=chosen, goal_stated=bool(goal or slo), slo=slo)
    answers = [rule(evidence) for rule in RULES]
    findings = rank([answer for answer in answers if isinstance(answer, Finding)])
    not_enough = tuple(answer for answer in answers if isinstance(answer, NotEnoughData))
    findings = lead(evidence, findings, not_enough)
    return Diagnosis(
        cause=findings[0].cause,
        verdict=verdict(evidence, findings[0], why),
        goal=chosen,
        breakdown=breakdown,
        findings=findings,
        not_enough=not_enough,
        slo=slo,
        ceilings=ceilings,
    )


def rank(findings: list[Finding]) -> tuple[Finding, ...]:
    """What is wrong with the data first, then what is wrong and worth it, then bounds, then the rest."""
    return tuple(sorted(findings, key=_rank))


def _rank(finding: Finding) -> tuple[int, float, float, str]:
    gain = won(finding.prediction)
    if finding.cause == Cause.DATA_DEFECT:
        tier = 0
    elif gain < WORTH:
        tier = 3
    else:
        tier = 2 if finding.cause in BOUNDS else 1
    return tier, -gain * TRUST[finding.confidence], -finding.share, finding.cause


def lead(
    evidence: Evidence, findings: tuple[Finding, ...], not_enough: tuple[NotEnoughData, ...]
) -> tuple[Finding, ...]:
    """Put `healthy` or `unknown` in front where that is the answer."""
    if findings and findings[0].cause == Cause.DATA_DEFECT:
        return findings
    if not evidence.requests:
        if evidence.breakdown.defects:
            return (unknown(evidence, not_enough, "no request could be diagnosed"), *findings)
        return (unknown(evidence, not_enough, "no request ran to its end"), *findings)
    missing = goals.unmeasured(evidence.breakdown, evidence.slo)
    if missing:
        return (unknown(evidence, not_enough, f"the recording does not hold {', '.join(missing)}"), *findings)
    over = goals.violations(evidence.breakdown, evidence.slo)
    if evidence.slo and not over:
        return (healthy(evidence, not_enough), *findings)
    worth = bool(findings) and won(findings[0].prediction) >= WORTH
    if worth or (over and findings and findings[0].prediction is not None):
        return findings
    unexplained = evidence.share(evidence.phase_ns(Phase.UNATTRIBUTED))
    if over or unexplained > UNEXPLAINED:
        why = "no rule explains what misses the SLO" if over else "too much of the time is unattributed"
        return (unknown(evidence, not_enough, why), *findings)
    waiting = evidence.share(evidence.phase_ns(Phase.QUEUE))
    if waiting >= WORTH and any(_about_queue(question) for question in not_enough):
        why = f"{percent(waiting)} of the time is spent in the queue, and for what was not measured"
        return (unknown(evidence, not_enough, why), *findings)
    if evidence.goal_stated and not_enough:
        # Whoever states a goal asks for the bound, and a rule that could name it lacks a measurement.
        why = f"nothing is wrong that it shows, but what bounds {evidence.goal} was not measured"
        return (unknown(evidence, not_enough, why), *findings)
    return (healthy(evidence, not_enough), *findings)


def _about_queue(question: NotEnoughData) -> bool:
    return any(cause == question.cause and cause.phase == Phase.QUEUE for cause in Cause)
