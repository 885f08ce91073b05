"""From a breakdown to the verdict: ask every rule, rank by what is won, and say when nothing is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from phasetrace.advise import goals
from phasetrace.advise.causes import RULES
from phasetrace.advise.evidence import Evidence, gather
from phasetrace.advise.ranking import WORTH, Candidate, rank
from phasetrace.advise.table.view import view
from phasetrace.advise.verdict import healthy, unknown, verdict
from phasetrace.advise.waiting import scheduler_ns
from phasetrace.advise.words import percent
from phasetrace.analyze.as_table import table_of
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import (
    Breakdown,
    Ceilings,
    Diagnosis,
    Finding,
    Goal,
    NotEnoughData,
    Phase,
    TableHardware,
)
from phasetrace.semconv import Cause

UNEXPLAINED = 0.05  # of the time: DESIGN.md section 8; with more, the trace does not explain itself


def diagnose(
    breakdown: Breakdown,
    goal: Goal | None = None,
    slo: Mapping[str, float] | None = None,
    ceilings: Ceilings | None = None,
    table: StepTable | None = None,
) -> Diagnosis:
    """The verdict on a breakdown, for a goal or an SLO (metric -> seconds) where the user stated one.

    `table` is that of the recording's steps, and saves making it again.
    """
    evidence = gather(breakdown, ceilings, table)
    chosen, why = goals.choose_goal(breakdown, evidence.load, goal, slo)
    evidence = replace(evidence, goal=chosen, goal_stated=bool(goal or slo), slo=slo)
    answers = [rule.on_steps(evidence) for rule in RULES]
    open_questions = [answer for answer in answers if isinstance(answer, NotEnoughData)]
    found = [answer for answer in answers if isinstance(answer, Candidate)]
    found += told(evidence, {question.cause for question in open_questions})
    answered = {candidate.finding.cause for candidate in found}
    not_enough = tuple(question for question in open_questions if question.cause not in answered)
    findings = lead(evidence, rank(found), not_enough)
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


def told(evidence: Evidence, undecided: set[str]) -> list[Candidate]:
    """What the recording, told as a table, shows of causes of which its steps do not tell.

    A table has the time of one request; as elsewhere in a recording, that of all is told.
    """
    if not evidence.requests:
        return []
    asked = [rule for rule in RULES if rule.in_steps is None or rule.cause in undecided]
    table = table_of(evidence.breakdown, evidence.table)
    table = replace(
        table,
        groups=table.groups[-1:],  # without the warm-up, which is no setting of its own
        hardware=_with_ceilings(table.hardware, evidence.ceilings),
    )
    seen = view(table, evidence.goal, evidence.slo)
    answers = [rule.on_table(seen) for rule in asked]
    return [
        replace(answer, finding=replace(answer.finding, ns=answer.finding.ns * len(evidence.requests)))
        for answer in answers
        if answer is not None
    ]


def _with_ceilings(hardware: TableHardware, ceilings: Ceilings | None) -> TableHardware:
    """What the machine reaches, a device, where that is known and the recording does not say."""
    if ceilings is None or hardware.memory_bandwidth_gb_s is not None:
        return hardware
    each = 1 / (hardware.count or 1)
    return replace(
        hardware,
        memory_bandwidth_gb_s=ceilings.bandwidth_bytes_s / 1e9 * each,
        tflops=ceilings.flops_s / 1e12 * each if ceilings.flops_s else None,
    )


def lead(
    evidence: Evidence, found: list[Candidate], not_enough: tuple[NotEnoughData, ...]
) -> tuple[Finding, ...]:
    """Put `healthy` or `unknown` in front where that is the answer."""
    findings = tuple(candidate.finding for candidate in found)
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
    worth = bool(found) and found[0].weight >= WORTH
    if worth or (over and findings and findings[0].prediction is not None):
        return findings
    unexplained = evidence.share(evidence.phase_ns(Phase.UNATTRIBUTED))
    if over or unexplained > UNEXPLAINED:
        why = "no rule explains what misses the SLO" if over else "too much of the time is unattributed"
        return (unknown(evidence, not_enough, why), *findings)
    waiting = evidence.share(scheduler_ns(evidence))
    if waiting >= WORTH and evidence.goal is not Goal.TPOT:
        named = [f for f in findings if f.phase == Phase.QUEUE and f.share >= WORTH]
        if named:  # what its fix wins could not be predicted
            return (*named, *(f for f in findings if f not in named))
        why = f"{percent(waiting)} of the time is spent in the queue, and for what was not measured"
        return (unknown(evidence, not_enough, why), *findings)
    if evidence.goal_stated and not_enough:
        # Whoever states a goal asks for the bound, and a rule that could name it lacks a measurement.
        why = f"{_best(found)}, but what bounds {evidence.goal} was not measured"
        return (unknown(evidence, not_enough, why), *findings)
    return (healthy(evidence, not_enough), *findings)


def _best(found: list[Candidate]) -> str:
    """What can be said of a recording in which nothing is worth a change."""
    if not found:
        return "nothing is wrong that it shows"
    best = max(found, key=lambda candidate: candidate.weight)
    most = f"{best.finding.cause}, {percent(best.weight)}"
    return f"no fix that it shows brings {percent(WORTH)} (the most: {most})"
