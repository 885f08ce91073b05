"""What stalls have in common: how often each cause struck, what it cost, and whether it comes regularly."""

from __future__ import annotations

import numpy as np

from phasetrace.analyze.stalls import CAUSES, Late
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Ints, StallPattern

FEWEST = 5  # events: of fewer, any would look regular now and then
REGULAR = 0.15  # mean deviation of the intervals from their median, as a share of it
APART = 3  # rows: late tokens closer than that are of one event, a prompt read in several chunks


def stall_patterns(late: Late, table: StepTable) -> tuple[StallPattern, ...]:
    """One a cause, the costliest first."""
    gaps = table.end_ns[late.row] - table.end_ns[late.before]
    found = []
    for place, cause in enumerate(CAUSES):
        own = late.cause == place
        if not own.any():
            continue
        rows, first = np.unique(late.row[own], return_index=True)
        events = rows[np.concatenate([[True], np.diff(rows) > APART])]
        found.append(
            StallPattern(
                cause=cause,
                count=len(events),
                ns=int((gaps[own] - late.usual_ns[own]).sum()),
                typical_ns=int(np.median(gaps[own][first])),
                period_ns=period_ns(np.sort(table.end_ns[events])),
            )
        )
    return tuple(sorted(found, key=lambda pattern: -pattern.ns))


def period_ns(times: Ints) -> int | None:
    """From one to the next, where they come at regular intervals."""
    if len(times) < FEWEST:
        return None
    intervals = np.diff(times)
    middle = float(np.median(intervals))
    if middle <= 0 or float(np.abs(intervals - middle).mean()) > REGULAR * middle:
        return None
    return round(middle)
