"""Which causes went, which stayed, which came; and whether what was predicted came true."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phasetrace.model import Diagnosis, Fate, Finding, FindingChange, MetricChange, Word
from phasetrace.semconv import Cause

NO_FAULT = (Cause.HEALTHY, Cause.UNKNOWN)
S = 1e9
UNIT = {"ttft_s": S, "tpot_s": S, "e2e_s": S, "throughput_tok_s": 1.0}  # of the metric, in a prediction's


def finding_changes(
    before: Diagnosis, after: Diagnosis, of_goal: MetricChange | None
) -> Iterator[FindingChange]:
    """In the order of the diagnoses: those before, then what came.

    What was predicted of one fix says nothing of several: it is held against what came of the first only.
    """
    was, now = _faults(before.findings), _faults(after.findings)
    first = next((cause for cause in was if cause not in now), None)
    tried = before.cause if before.cause in was else first
    for cause, finding in was.items():
        measured = _measured(finding, of_goal) if cause == tried else None
        promised = finding.prediction
        inside = promised.low <= measured <= promised.high if promised and measured is not None else None
        fate = Fate.STAYED if cause in now else Fate.GONE
        yield FindingChange(cause, fate, finding, now.get(cause), measured, inside)
    for cause, finding in now.items():
        if cause not in was:
            yield FindingChange(cause, Fate.CAME, None, finding)


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
