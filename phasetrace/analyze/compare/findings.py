"""Which causes went, which stayed, which came; and whether what was predicted came true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from phasetrace.analyze.noise import RUNS_DIFFER
from phasetrace.model import Diagnosis, Fate, Finding, FindingChange, MetricChange, Prediction, Word
from phasetrace.semconv import Cause

NO_FAULT = (Cause.HEALTHY, Cause.UNKNOWN)
S = 1e9
UNIT = {"ttft_s": S, "tpot_s": S, "e2e_s": S, "throughput_tok_s": 1.0}  # of the metric, in a prediction's


def finding_changes(
    before: Diagnosis, after: Diagnosis, of_goal: MetricChange | None, machine: float = 1.0
) -> Iterator[FindingChange]:
    """In the order of the diagnoses: those before, then what came.

    `machine` is how many times better AFTER would be with BEFORE's share of it.

    What was predicted of one fix says nothing of several: it is held against what came of the first only.
    """
    was, now = _faults(before.findings), _faults(after.findings)
    first = next((cause for cause in was if cause not in now), None)
    tried = before.cause if before.cause in was else first
    for cause, finding in was.items():
        measured = _measured(finding, of_goal) if cause == tried else None
        fate = Fate.STAYED if cause in now else Fate.GONE
        yield _held(
            FindingChange(cause, fate, finding, now.get(cause), measured), finding.prediction, machine
        )
    for cause, finding in now.items():
        if cause not in was:
            yield FindingChange(cause, Fate.CAME, None, finding)


def _held(f: FindingChange, promised: Prediction | None, machine: float) -> FindingChange:
    """Against what was predicted."""
    if promised is None or f.measured is None:
        return f
    at_share = f.measured * machine if promised.metric == "throughput_tok_s" else f.measured / machine
    inside = min(f.measured, at_share) <= promised.high and max(f.measured, at_share) >= promised.low
    differs = not 1 - RUNS_DIFFER < machine < 1 + RUNS_DIFFER
    return replace(f, at_share=at_share if differs else None, inside=inside)


def _faults(findings: Sequence[Finding]) -> dict[str, Finding]:
    return {finding.cause: finding for finding in findings if finding.cause not in NO_FAULT}


def _measured(finding: Finding, change: MetricChange | None) -> float | None:
    """The goal's metric in AFTER, in the unit of what was predicted of it."""
    promised = finding.prediction
    if promised is None or change is None or change.word is Word.UNLIKE:
        return None
    if _name(promised.metric) != _name(change.metric):
        return None
    return change.after / UNIT[promised.metric]


def _name(metric: str) -> str:
    return metric.partition("_")[0]
