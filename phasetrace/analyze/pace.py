"""How fast tokens came over the course of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phasetrace.analyze.step_table import StepTable
from phasetrace.analyze.token_gaps import Floats, TokenGaps
from phasetrace.model import Ints, Pace, RequestBreakdown

STRETCHES = 240  # twice as many as the widest line has columns


def pace(requests: Sequence[RequestBreakdown], gaps: TokenGaps, table: StepTable) -> Pace | None:
    """Of these requests, whose times between tokens are `gaps`; None where no times of tokens are known.

    A gap shows in each stretch that it reaches into, so that no stall hides between two; a token counts where
    it came.
    """
    begin = min((r.request.arrival_ns for r in requests), default=0)
    end = max((r.request.finished_ns or 0 for r in requests), default=0)
    if not len(gaps.gap_ns) or end <= begin:
        return None
    tokens, longest = np.zeros(STRETCHES), np.zeros(STRETCHES)
    for end_ns, gap_ns, came in gaps.by_end(table):
        last = _stretch(end_ns, begin, end)
        tokens += np.bincount(last, came, STRETCHES)
        _spread(longest, gap_ns, _stretch(end_ns - gap_ns.astype(np.int64), begin, end), last)
    firsts = [(r.request.first_token_ns, len(r.request.sequences) or 1) for r in requests]
    known = np.array([first for first in firsts if first[0] is not None], np.int64).reshape(-1, 2)
    tokens += np.bincount(_stretch(known[:, 0], begin, end), known[:, 1], STRETCHES)
    return Pace(begin, end, tuple(map(round, tokens.tolist())), tuple(map(int, longest.tolist())))


def _stretch(time_ns: Ints, begin: int, end: int) -> Ints:
    return ((time_ns - begin) * STRETCHES // (end - begin)).clip(0, STRETCHES - 1)


def _spread(longest: Floats, gap_ns: Ints | Floats, first: Ints, last: Ints) -> None:
    """Raise each stretch to the gaps that reach into it."""
    runs = np.flatnonzero(np.diff(last, prepend=-1))  # tokens come in order of time, mostly
    if len(runs):
        np.maximum.at(longest, last[runs], np.maximum.reduceat(gap_ns, runs))
    wide = np.flatnonzero(first < last)
    reach = (last - first)[wide]
    within = np.arange(reach.sum()) - np.repeat(np.cumsum(reach) - reach, reach)
    np.maximum.at(longest, np.repeat(first[wide], reach) + within, np.repeat(gap_ns[wide], reach))
