"""What speculation brought in an engine's shared steps: tokens a sequence, and time beside plain steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.advise.evidence import Evidence
from phasetrace.analyze.step_table import UNKNOWN
from phasetrace.model import Ints

FEWEST = 8  # steps of a kind: the median of fewer is chance
ALIKE = 0.25  # of the sequences, more or fewer: steps that may be compared
LEAST_STEP = 0.3  # of a step that verifies stays without drafts, whatever a position seems to cost


@dataclass(frozen=True, slots=True)
class Drafting:
    """Over the steps that verified drafts; times are medians."""

    steps: int
    drafted: float  # tokens a sequence and step
    accepted: float  # of these, the share that was right
    given: float  # tokens a sequence and step
    step_ns: float
    plain_ns: float  # a step of as many sequences without drafts
    seen: bool  # plain steps were recorded, or what a position costs; else `plain_ns` is at most so much


def drafting(evidence: Evidence) -> Drafting | None:
    """None where the engine's decode steps compute one position a sequence, or do not say how many."""
    kinds = [_steps_of(evidence, steps_key) for steps_key in evidence.table.streams]
    columns = [np.concatenate(parts) for parts in zip(*kinds, strict=True)] if kinds else []
    if not columns:
        return None
    length, running, drafted, given = columns
    verifies, plain = drafted > 0, drafted == 0
    if verifies.sum() < FEWEST:
        return None
    rows = float(np.median(running[verifies]))
    step = float(np.median(length[verifies]))
    alike = plain & (np.abs(running - rows) <= ALIKE * rows)
    each = float(drafted[verifies].sum() / running[verifies].sum())
    costs = evidence.prompt_costs
    seen, without = False, step
    if alike.sum() >= FEWEST:
        seen, without = True, float(np.median(length[alike]))
    elif costs is not None:
        seen, without = True, max(LEAST_STEP * step, step - costs[1] * each * rows)
    tokens = float(given[verifies].sum() / running[verifies].sum())
    right = float((given[verifies] - running[verifies]).sum() / drafted[verifies].sum())
    return Drafting(int(verifies.sum()), each, max(0.0, right), tokens, step, min(without, step), seen)


def _steps_of(
    evidence: Evidence, key: tuple[str, int]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Length, sequences, positions beyond one each, tokens given: of the steps that read no prompt."""
    rows = evidence.table.streams[key]
    here = slice(rows.begin, rows.end)
    table = evidence.table
    reads = np.zeros(len(rows), np.bool_)
    index: Ints = table.index[here]
    for request in evidence.breakdown.recording.requests:
        if (request.process, request.stream) == key:
            for chunk in (*request.prefill_chunks, *request.recomputed):
                place = int(index.searchsorted(chunk.step))
                if place < len(index) and index[place] == chunk.step:
                    reads[place] = True
    given = np.concatenate(
        [
            np.full(len(s), UNKNOWN, np.int64) if s.new_tokens is None else s.new_tokens
            for s in sorted(evidence.breakdown.recording.steps, key=lambda s: s.first_index)
            if (s.process, s.stream) == key
        ]
    )
    running, computed = table.running[here], table.computed_tokens[here]
    known = ~reads & (running > 0) & (computed >= running) & (given != UNKNOWN)
    length = (table.end_ns - table.begin_ns)[here]
    return length[known], running[known], (computed - running)[known], given[known]
