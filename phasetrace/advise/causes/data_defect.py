"""The data contradicts itself or physics: nothing is diagnosed from it."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.checks import contradictions
from phasetrace.advise.table.told import Told
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Refused: the numbers contradict each other or physics (impossible, negative or inconsistent), so"
    " nothing is diagnosed from them. Recompute or measure again what is named here; failed requests and"
    " errors are not measurements.",
    tradeoff="",
)
SHARE = 0.2  # of the requests: then what is left may be another population than the one that ran


def in_steps(evidence: Evidence) -> Seen | None:
    """So many requests contradict themselves that statistics over the rest mean little."""
    b = evidence.breakdown
    given = len(b.recording.requests)
    refused = given - len(b.requests) - len(b.warm_up) - len(b.failed)
    copies = given - len({request.id for request in b.recording.requests})
    if refused - copies <= SHARE * (given - copies):
        return None
    return Seen(
        0,
        evidence=tuple(defect.defect for defect in b.defects),
        fix=f"Do not trust these numbers: {count(refused, 'request')} of {given:,} contradict themselves"
        " and were refused. Record again, all spans of a request with one clock and to their end.",
        commands={evidence.engine: evidence.to_record},
        tier=Tier.DEFECT,
        share=0.0,
    )


def in_table(view: View) -> Told | None:
    """A group of the table cannot be."""
    said = tuple(said for setting in view.settings for said in contradictions(setting))
    return Told(Tier.DEFECT, said, weight=1.0, seconds=0.0) if said else None


RULE = Rule(Cause.DATA_DEFECT, WORDS, in_steps, in_table)
