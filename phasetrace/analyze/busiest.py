"""The second in which an engine computed most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phasetrace.analyze.composition import Composition
from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable

SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time and the rows of the steps in it."""

    begin_ns: int
    end_ns: int
    rows: Rows


def busiest(made: Composition, table: StepTable) -> Window | None:
    """Of all shared streams, the second from a step's begin in which most tokens were computed."""
    best, most = None, 0
    tokens = made.positions + made.prompt
    sums = np.concatenate([[0], np.cumsum(tokens)])
    for rows in table.streams.values():
        if not len(rows) or not made.shared[rows.begin]:
            continue
        begin = table.steps.begin_ns(rows.begin, rows.end)
        until = rows.begin + begin.searchsorted(begin + SECOND)
        computed = sums[until] - sums[rows.begin : rows.end]
        at = int(computed.argmax())
        if computed[at] > most:
            most = int(computed[at])
            found = Rows(rows.begin + at, int(until[at]))
            length = max(1, min(SECOND, int(table.end_ns[found.end - 1] - begin[at])))
            best = Window(int(begin[at]), int(begin[at]) + length, found)
    return best
