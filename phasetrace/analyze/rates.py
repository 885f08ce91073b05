"""What the trace itself says of the cost of a token: by least squares over its prefills and its decode steps.

Only what varied can be told apart: where all steps had one batch size, the cost of a sequence is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.coverage import Coverage
from phasetrace.analyze.non_negative import non_negative
from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Part, Phase, Request, RequestBreakdown, chosen

FEWEST_POINTS = 3  # two points make a line whatever they say
LEAST_RANGE = 2.0  # largest over smallest: noise of 10 % bends a slope over a narrower range by its own size


@dataclass(frozen=True, slots=True)
class PrefillCost:
    """Forward time of a prefill = fixed + per_token x new tokens; without a range, all is per token."""

    fixed_ns: float | None
    per_token_ns: float
    longest: int  # new tokens of the longest prefill seen
    typical: float  # of the median one


@dataclass(frozen=True, slots=True)
class StepCost:
    """Forward time of a decode step = fixed + per_row x rows; unknown apart where rows did not vary."""

    typical_ns: float
    fixed_ns: float | None
    per_row_ns: float | None
    fewest_rows: int
    most_rows: int


def prefill_cost(requests: Iterable[RequestBreakdown]) -> PrefillCost | None:
    """Fitted on the forward part of each request's prefill."""
    points = [
        (r.new_prompt_tokens, ns)
        for r in requests
        if r.new_prompt_tokens and (ns := r.part_ns(Phase.PREFILL, Part.FORWARD) or r.phase_ns(Phase.PREFILL))
    ]
    if not points:
        return None
    tokens, times = np.array(points, np.float64).T
    average = float(
        np.median(times) / np.median(tokens)
    )  # medians: one stalled prefill is no cost of a token
    longest, typical = int(tokens.max()), float(np.median(tokens))
    if len(points) < FEWEST_POINTS or longest < LEAST_RANGE * tokens.min():
        return PrefillCost(None, average, longest, typical)
    fixed, per_token = non_negative(np.stack([np.ones(len(tokens)), tokens], axis=1), times)
    return PrefillCost(fixed, per_token or average, longest, typical)


def step_cost(requests: Sequence[Request], table: StepTable) -> StepCost | None:
    """Fitted on the forward part of the decode steps that the requests took part in."""
    used = decode_rows(requests, table)
    times = table.parts.lasting(Part.FORWARD, used)
    rows = chosen(table.computed_tokens, used)
    if (rows == UNKNOWN).any():
        rows = np.where(rows == UNKNOWN, chosen(table.running, used), rows)
        known = rows != UNKNOWN
        used[used] = known
        rows, times = rows[known], times[known]
    if len(times) == 0:
        return None
    fewest, most = int(rows.min()), int(rows.max())
    if len(times) < FEWEST_POINTS or most < LEAST_RANGE * fewest:
        return StepCost(float(np.median(times, overwrite_input=True)), None, None, fewest, most)
    typical = float(np.median(times))
    points = np.stack([np.ones(len(rows)), rows.astype(np.float64)], axis=1)
    fixed, per_row = non_negative(points, times.astype(np.float64))
    return StepCost(typical, fixed, per_row, fewest, most)


def decode_rows(requests: Iterable[Request], table: StepTable) -> npt.NDArray[np.bool_]:
    """Which steps of the table at least one of the requests decoded in."""
    found = (decode for request in requests if (decode := table.decode_rows(request)) is not None)
    return Coverage(len(table), [(decode.begin, decode.end, 1) for decode in found]).rows
