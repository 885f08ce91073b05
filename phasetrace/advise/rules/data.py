"""What is wrong with the data itself."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.words import count
from phasetrace.model import Finding, NotEnoughData
from phasetrace.semconv import Cause, CausePhase

SHARE = 0.2  # of the requests: then what is left may be another population than the one that ran


def data_defect(evidence: Evidence) -> Finding | NotEnoughData | None:
    """So many requests contradict themselves that statistics over the rest mean little."""
    b = evidence.breakdown
    given = len(b.recording.requests)
    refused = given - len(b.requests) - len(b.warm_up) - len(b.failed)
    copies = given - len({request.id for request in b.recording.requests})
    if refused - copies <= SHARE * (given - copies):
        return None
    return Finding(
        cause=Cause.DATA_DEFECT,
        phase=CausePhase.NONE,
        ns=0,
        share=0.0,
        confidence="high",
        evidence=tuple(defect.defect for defect in b.defects),
        recommendation=(
            f"Do not trust these numbers: {count(refused, 'request')} of {given:,} contradict themselves"
            " and were refused. Record again, all spans of a request with one clock and to their end."
        ),
        commands=evidence.to_record,
    )
