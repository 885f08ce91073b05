"""From a table to the verdict: refuse what contradicts itself, ask every rule, rank what they find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from phasetrace.advise.causes import RULES, data_defect
from phasetrace.advise.ranking import WORTH, Candidate, Tier, rank
from phasetrace.advise.table.breakdown import breakdown
from phasetrace.advise.table.healthy import healthy, unknown
from phasetrace.advise.table.view import View, view
from phasetrace.model import Diagnosis, Finding, Goal, Table
from phasetrace.semconv import Cause

NO_GOAL = "no goal was stated, and the numbers do not show whether the device does what it can"
TWIN = 1.5  # times: two groups of one setting and load that differ by that much differ in something unsaid


def diagnose_table(
    table: Table, goal: Goal | None = None, slo: Mapping[str, float] | None = None
) -> Diagnosis:
    """The verdict on a table, for a goal or an SLO (metric -> seconds) where the user stated one."""
    seen = view(table, goal, slo)
    refused = data_defect.RULE.on_table(seen)
    if refused is not None:
        return _diagnosis(seen, (refused.finding,), refused.finding.evidence)
    found = _ask(seen)
    if not found or found[0].weight < WORTH:
        found = _ask(replace(seen, slight=True))
    return _diagnosis(seen, lead(seen, found))


def _ask(seen: View) -> list[Candidate]:
    answers = [rule.on_table(seen) for rule in RULES]
    return rank(answer for answer in answers if answer is not None)


def lead(seen: View, found: list[Candidate]) -> tuple[Finding, ...]:
    """Put `healthy` or `unknown` in front where that is the answer."""
    findings = tuple(c.finding for c in found)
    well = healthy(seen, found)
    if well is not None:
        return (well, *findings)
    first = found[0] if found else None
    if first is None or first.weight < WORTH:
        return (unknown(seen), *findings)
    if not seen.goal_stated and first.tier is Tier.BOUND and first.finding.cause != Cause.LONG_OUTPUT:
        return (unknown(seen, NO_GOAL), *findings)
    told_apart = first.tier <= Tier.FAULT and first.finding.confidence == "high"  # by the twins themselves
    if first.tier >= Tier.FAULT and not told_apart and (twin := _twin(seen)) is not None:
        return (unknown(seen, twin), *findings)
    if first.tier is Tier.BOUND and (refuted := _refuted_bound(seen)) is not None:
        return (unknown(seen, refuted), *findings)
    return findings


def _twin(seen: View) -> str | None:
    """Two groups alike in all that the table tells, one much faster: no bound explains the other."""
    for pair in seen.pairs:
        if not pair.differs and pair.ratio >= TWIN:
            return (
                f"{pair.worse.name} and {pair.better.name} are the same by all that the table tells,"
                " and one is"
                f" {pair.ratio:.2g} times better: what differs is not in it"
            )
    return None


def _refuted_bound(seen: View) -> str | None:
    """The same load on the same devices, much faster with other settings: it was not the device's bound."""
    for pair in seen.pairs:
        if (
            pair.worse is seen.subject
            and pair.ratio >= TWIN
            and pair.only(*pair.worse.knobs, *pair.better.knobs)
        ):
            return (
                f"{pair.better.name} serves the same load {pair.ratio:.2g} times better with other settings"
                f" ({', '.join(pair.differs)}): {pair.worse.name} is not at what its device can do"
            )
    return None


def _diagnosis(
    seen: View,
    findings: tuple[Finding, ...],
    defects: tuple[str, ...] = (),
) -> Diagnosis:
    return Diagnosis(
        cause=findings[0].cause,
        verdict=_verdict(seen, findings[0]),
        goal=seen.goal,
        breakdown=breakdown(seen, defects),
        findings=findings,
        slo=seen.slo,
    )


def _verdict(seen: View, first: Finding) -> str:
    if first.cause == Cause.DATA_DEFECT:
        return f"The numbers contradict themselves, and no diagnosis is made from them: {first.evidence[0]}."
    if first.cause == Cause.UNKNOWN:
        return f"This table does not tell the cause: {first.evidence[0]}."
    said = first.evidence[0]
    sentence = f"{said[0].upper()}{said[1:]}."
    return sentence if seen.goal_stated else f"{sentence} Judged by {seen.goal}, since no goal was given."
