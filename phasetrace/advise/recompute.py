"""Whether decode steps compute the whole sequence again, read off the positions that each computed."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import UNKNOWN
from phasetrace.model import RequestBreakdown

RECOMPUTED = 4.0  # positions a step and sequence: speculation's verification aside, decode computes one
ENOUGH = 64  # steps: a request without a cache shows it from its first step on
OTHERS_SHARE = (
    "assisted",
    "prompt_lookup",
    "continuous",
)  # modes whose steps compute more for another reason

PER_CALL = ("transformers",)  # engines whose steps belong to one call, and that can run without a cache


def decode_rows_of(evidence: Evidence, request: RequestBreakdown) -> Rows | None:
    """The rows of the steps that gave the request's second to last tokens."""
    return evidence.table.decode_rows(request.request) or None


def recomputes(evidence: Evidence, request: RequestBreakdown) -> bool:
    """A decode step computes several positions for each sequence."""
    if request.request.mode in OTHERS_SHARE or request.request.engine not in PER_CALL:
        return False
    if request.request.settings.get("use_cache") is True:
        return False
    rows = decode_rows_of(evidence, request)
    if rows is None:
        return False
    seen = slice(rows.begin, min(rows.end, rows.begin + ENOUGH))
    computed, running = evidence.table.computed_tokens[seen], evidence.table.running[seen]
    if (computed == UNKNOWN).any():
        return request.request.settings.get("use_cache") is False
    known = bool((running > 0).all())
    sequences = int(running.sum()) if known else len(computed) * max(1, len(request.request.sequences))
    return int(computed.sum()) >= RECOMPUTED * sequences
