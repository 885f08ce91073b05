"""What speculation brought in an engine's shared steps: tokens a sequence, and the time of a step without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.advise.evidence import Evidence
from phasetrace.analyze.step_table import UNKNOWN

Counts = npt.NDArray[np.int64]
FEWEST = 8  # steps of a kind: the median of fewer is chance
MOST = 20_000  # pairs of steps: more tell nothing new
LEAST_STEP = 0.3  # of a step that verifies stays without drafts, whatever a token of a prompt costs
SURE = 1.645  # standard errors: chance alone gets there in 5 of 100 recordings
USUAL_DRAFT = 0.05  # of a step that drafting one token costs, where nothing tells
SHARES = np.geomspace(1e-4, 1.0, 200)  # of a plain step, for a position; neighbours differ by 5 %


@dataclass(frozen=True, slots=True)
class Drafting:
    """Over the steps that verified drafts; times are medians."""

    steps: int
    drafted: float  # tokens a sequence and step
    accepted: float  # of these, the share that was right
    given: float  # tokens a sequence and step
    step_ns: float
    plain_ns: float  # the same step without drafts
    share: float  # of the time of all decode steps
    seen: bool  # what a position costs was recorded; else `plain_ns` is at most so much


def drafting(evidence: Evidence) -> Drafting | None:
    """None where the engine's decode steps compute one position a sequence, or do not say how many."""
    kinds = [_steps_of(evidence, steps_key) for steps_key in evidence.table.streams]
    columns = [np.concatenate(parts) for parts in zip(*kinds, strict=True)] if kinds else []
    if not columns:
        return None
    verifies = columns[2] > 0
    if verifies.sum() < FEWEST:
        return None
    whole = int(columns[0].sum())
    cost = position_share(*columns[:3])
    length, running, drafted, given = (column[verifies] for column in columns)
    plain = length.astype(np.float64)
    if cost is not None:
        plain /= 1 + cost * drafted
    elif evidence.prompt_costs is not None:
        plain = np.maximum(LEAST_STEP * length, length - evidence.prompt_costs[1] * drafted)
    return Drafting(
        steps=len(length),
        drafted=float(drafted.sum() / running.sum()),
        accepted=max(0.0, float((given - running).sum() / drafted.sum())),
        given=float(given.sum() / running.sum()),
        step_ns=float(np.median(length)),
        plain_ns=float(np.median(plain)),
        share=float(length.sum() / whole),
        seen=cost is not None or evidence.prompt_costs is not None,
    )


def position_share(length: Counts, running: Counts, drafted: Counts) -> float | None:
    """What one more position adds to a step, as a share of the step without any; 0 where nothing shows.

    None where steps do not vary. From steps that follow each other, since a busy machine is slower for
    seconds on end: with share b, the longer of two takes (1 + b x its positions) / (1 + b x the other's)
    times as long. The b whose logarithms are off least (least absolute deviations: stalls do not count).
    """
    pairs = np.flatnonzero((np.diff(running) == 0) & (np.diff(drafted) != 0))
    if len(pairs) < FEWEST:
        return None
    pairs = pairs[:: -(-len(pairs) // MOST)]
    before, after = drafted[pairs], drafted[pairs + 1]
    longer = np.log(length[pairs + 1] / length[pairs])
    agree = float(np.mean(longer * (after - before) > 0))
    if agree - 0.5 < SURE * 0.5 / np.sqrt(len(pairs)):
        return 0.0
    off = [np.abs(longer - np.log((1 + b * after) / (1 + b * before))).sum() for b in SHARES]
    return float(SHARES[int(np.argmin(off))])


def _steps_of(evidence: Evidence, key: tuple[str, int]) -> tuple[Counts, Counts, Counts, Counts]:
    """Length, sequences, positions beyond one each, tokens given: of the steps that read no prompt."""
    rows = evidence.table.streams[key]
    here = slice(rows.begin, rows.end)
    table = evidence.table
    reads = np.zeros(len(rows), np.bool_)
    for request in evidence.breakdown.recording.requests:
        if (request.process, request.stream) == key:
            for chunk in (*request.prefill_chunks, *request.recomputed):
                row = table.row(rows, chunk.step)
                if row is not None:
                    reads[row - rows.begin] = True
    given = np.concatenate(
        [
            np.full(len(s), UNKNOWN, np.int64) if s.new_tokens is None else s.new_tokens
            for s in sorted(evidence.breakdown.recording.steps, key=lambda s: s.first_index)
            if (s.process, s.stream) == key
        ]
    )
    length = table.length_ns[here]
    running, computed = table.running[here], table.computed_tokens[here]
    known = ~reads & (running > 0) & (length > 0) & (computed >= running) & (given != UNKNOWN)
    return length[known], running[known], (computed - running)[known], given[known]


def best_length(drafted: float, accepted: float, step: float, plain: float | None) -> tuple[int, float]:
    """The draft length that gives the least time a token, and that time in the unit of a step's.

    With acceptance p of each token, a step with k drafts yields (1 - p^(k+1)) / (1 - p) tokens (Leviathan
    et al. 2023, eq. 1); p follows from the `accepted` tokens that the present length yields a step. A step
    costs the plain one and each drafted token.
    """
    low, high = 0.0, 0.999
    for _ in range(40):
        p = (low + high) / 2
        low, high = (p, high) if _yield(p, drafted) < accepted else (low, p)
    p = (low + high) / 2
    base = plain if plain and plain < step else step / (1 + USUAL_DRAFT * drafted)
    each = max(0.0, step - base) / drafted
    times = {k: (base + each * k) / _yield(p, k) for k in range(int(drafted) + 1)}
    best = min(times, key=lambda k: times[k])
    return best, times[best]


def _yield(p: float, k: float) -> float:
    return float((1 - p ** (k + 1)) / (1 - p))
