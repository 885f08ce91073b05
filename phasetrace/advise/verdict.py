"""The answers that are no fault, and the one sentence that says any answer."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.words import percent, seconds
from phasetrace.model import Finding, NotEnoughData, Phase
from phasetrace.semconv import Cause, CausePhase

# What a device does at its best: not to know of these is no reason to doubt that nothing is wrong
BOUNDS = frozenset({Cause.LONG_OUTPUT, Cause.LONG_PROMPT, Cause.BANDWIDTH_BOUND})
FEW = 3  # requests: fewer show that nothing is wrong here, not that nothing ever is


def healthy(evidence: Evidence, not_enough: tuple[NotEnoughData, ...]) -> Finding:
    """Nothing in this recording is worth changing."""
    b = evidence.breakdown
    known = len(b.requests) >= FEW and not b.unsplit and all(q.cause in BOUNDS for q in not_enough)
    largest = max(b.phases, key=lambda phase: phase.ns)
    said = [
        f"{largest.phase} is the largest phase with {percent(evidence.share(largest.ns))} of the time,"
        " and no fix would save 15 % or more on the goal",
        f"{percent(evidence.share(evidence.phase_ns(Phase.UNATTRIBUTED)))} of the time is unattributed",
    ]
    for metric, limit in (evidence.slo or {}).items():
        said.insert(0, f"p95 of {metric} is {seconds(b.metrics[f'{metric}_ns'].p95)}, the SLO {limit:g} s")
    return Finding(
        cause=Cause.HEALTHY,
        phase=CausePhase.NONE,
        ns=0,
        share=0.0,
        confidence="high" if evidence.slo else "medium" if known else "low",
        evidence=tuple(said),
        recommendation=(
            "Nothing to change for this goal."
            if evidence.goal_stated
            else "Nothing to change. To push one metric further, state it with --goal, or a limit with --slo."
        ),
    )


def unknown(evidence: Evidence, not_enough: tuple[NotEnoughData, ...], why: str) -> Finding:
    """The recording does not separate the causes; says what to measure next."""
    unattributed = evidence.phase_ns(Phase.UNATTRIBUTED)
    measure = list(dict.fromkeys(question.measure for question in not_enough))
    measure = measure or list(evidence.breakdown.unsplit)
    return Finding(
        cause=Cause.UNKNOWN,
        phase=CausePhase.NONE,
        ns=unattributed,
        share=evidence.share(unattributed),
        confidence="low",
        evidence=(
            why,
            *(
                (f"{percent(evidence.share(unattributed))} of the time is unattributed",)
                if unattributed
                else ()
            ),
        ),
        recommendation="Measure next: "
        + ("; ".join(measure[:3]) if measure else "a run of more requests")
        + ".",
        commands=evidence.to_record,
    )


def verdict(evidence: Evidence, finding: Finding, why_goal: str) -> str:
    """One sentence; a second says how the goal was chosen."""
    if finding.cause == Cause.UNKNOWN:
        return f"This recording does not tell the cause: {finding.evidence[0]}."
    if finding.cause == Cause.DATA_DEFECT:
        return "The data contradicts itself; no diagnosis is made from it."
    if finding.cause == Cause.HEALTHY:
        sentence = "The SLO is met." if evidence.slo else f"Nothing is wrong: {finding.evidence[0]}."
    else:
        sentence = f"{finding.evidence[0][0].upper()}{finding.evidence[0][1:]}."
    return f"{sentence} {why_goal}".strip()
