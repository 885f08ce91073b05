"""The parts of all steps: added up once over the stretches that are asked about, else unpacked again.

Parts are most of a recording: laid out in full they would take several times as much memory as all else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.pauses import Stops, carve
from phasetrace.model import NARROW, Ints, Part, StepColumns, joined, narrow

# The order in which a step's parts run, as far as engines agree on one. A step's columns hold totals, not
# places, so this order says which part a pause fell into and what a boundary in the middle of a step cuts
# off.
PART_ORDER = (
    Part.SCHEDULE,
    Part.STREAM,  # transformers 5.x calls the streamer after the criteria, which end a step
    Part.SETUP,
    Part.ENCODE,
    Part.PREPARE,
    Part.DRAFT,
    Part.FORWARD,
    Part.UPDATE,
    Part.LOGITS,
    Part.SAMPLING,
    Part.CRITERIA,
    Part.OUTPUT,
    Part.OTHER,
    Part.GC,
)
PLACE = {part: place for place, part in enumerate(PART_ORDER)}
GC_COLUMN = PLACE[Part.GC]
OTHER_COLUMN = PLACE[Part.OTHER]
AT_ONCE = 1 << 14  # rows that are unpacked together: next to no memory, and what is done to each costs little


class StepParts:
    """Nanoseconds of each part in each row of the step table, in the order of PART_ORDER.

    The garbage collector's time is taken out of the parts that it stopped.

    Args:
        steps: what was recorded.
        stopped: what the garbage collector took.
        cuts: rows, in order, before which parts are added up: a stretch between two is one subtraction. The
            first row of each piece is one, and so is the end.
    """

    def __init__(self, steps: StepColumns, stopped: Stops, cuts: Ints) -> None:
        self._steps = steps
        self._unpacked: tuple[int, Ints] | None = None
        self._cuts: list[int] = cuts.tolist()
        self._sums: Ints = np.zeros((len(cuts), len(PART_ORDER)), np.int64)
        carved, unequal, backwards = [], [], []
        largest = 0
        for first, last in self._some():
            begin, end = steps.starts[first], steps.starts[last]
            parts = self._recorded(first, last)
            hit = slice(*stopped.row.searchsorted((begin, end)))
            if hit.start < hit.stop:
                carve(parts, Stops(stopped.row[hit] - begin, stopped.begin[hit], stopped.end[hit]))
                carved.append(narrow(parts[np.unique(stopped.row[hit]) - begin]))
            here = slice(*cuts.searchsorted((begin, end)))
            np.add.reduceat(parts, cuts[here] - begin, axis=0, out=self._sums[here.start + 1 : here.stop + 1])
            length = steps.length_ns(begin, end)
            wrong = parts.sum(axis=1) != length
            if parts.min() < 0:
                wrong |= (parts < 0).any(axis=1)
            unequal.append(begin + np.flatnonzero(wrong))
            backwards.append(begin + np.flatnonzero(length < 0))
            largest = max(largest, int(parts.max()))
        np.cumsum(self._sums, axis=0, out=self._sums)
        self._carved_rows = np.unique(stopped.row)
        self._carved = np.concatenate(carved) if carved else np.zeros((0, len(PART_ORDER)), np.int64)
        self._kind = np.int32 if largest <= NARROW else np.int64
        self.unequal = joined(unequal)  # rows that cannot be made of their parts
        self.backwards = joined(backwards)  # rows that end before they begin

    def of(self, begin: int, end: int) -> Ints:
        """(rows, parts): of the rows [begin, end)."""
        if end <= begin:
            return np.zeros((0, len(PART_ORDER)), np.int64)
        first, last = self._steps.piece_at(begin), self._steps.piece_at(end - 1)
        start = self._steps.starts[first]
        parts = np.concatenate([self._piece(piece) for piece in range(first, last + 1)])
        return parts[begin - start : end - start]

    def at(self, rows: Ints) -> Ints:
        """(rows, parts): of single rows."""
        found = np.zeros((len(rows), len(PART_ORDER)), np.int64)
        pieces = np.searchsorted(self._steps.starts, rows, side="right") - 1
        for piece in np.unique(pieces).tolist():
            here = np.flatnonzero(pieces == piece)
            found[here] = self._piece(piece)[rows[here] - self._steps.starts[piece]]
        return found

    def column(self, part: Part) -> Ints:
        """Of one part in all rows."""
        found: Ints = np.zeros(self._steps.rows, self._kind)
        for begin, column in self._columns(part):
            found[begin : begin + len(column)] = column
        return found

    def lasting(self, part: Part, rows: npt.NDArray[np.bool_]) -> Ints:
        """How long a part took in each marked row in which it took any time; the others lose their mark."""
        found: Ints = np.zeros(np.count_nonzero(rows), self._kind)
        at = 0
        for begin, column in self._columns(part):
            here = rows[begin : begin + len(column)]
            here &= column > 0
            some = column[here]
            found[at : at + len(some)] = some
            at += len(some)
        return found[:at]

    def _columns(self, part: Part) -> Iterator[tuple[int, Ints]]:
        """First row and column of one part, some pieces at a time."""
        for first, last in self._some():
            begin, end = self._steps.starts[first], self._steps.starts[last]
            column = self._steps.part(part, first, last)
            carved = slice(*self._carved_rows.searchsorted((begin, end)))
            if carved.start < carved.stop:
                column = column.astype(self._kind)
                column[self._carved_rows[carved] - begin] = self._carved[carved, PLACE[part]]
            yield begin, column

    def spent(self, begin: int, end: int) -> Ints:
        """Time of each part over the rows [begin, end)."""
        found: Ints = self._before(end) - self._before(begin)
        return found

    def spent_in(self, rows: npt.NDArray[np.bool_]) -> Ints:
        """Time of each part over the rows that are marked."""
        edges = np.flatnonzero(np.diff(rows, prepend=False, append=False))
        runs = edges.reshape(-1, 2).tolist()
        nothing: Ints = np.zeros(len(PART_ORDER), np.int64)
        return sum((self.spent(begin, end) for begin, end in runs), nothing)

    def _before(self, row: int) -> Ints:
        cut = bisect_left(self._cuts, row)
        if self._cuts[cut] == row:
            found: Ints = self._sums[cut]
            return found
        rest: Ints = self.of(self._cuts[cut - 1], row).sum(axis=0)
        rest += self._sums[cut - 1]
        return rest

    def _some(self) -> Iterator[tuple[int, int]]:
        """All pieces, some at a time: [first, last)."""
        starts = self._steps.starts
        first = 0
        while first < len(starts) - 1:
            last = max(first + 1, bisect_right(starts, starts[first] + AT_ONCE) - 1)
            yield first, last
            first = last

    def _recorded(self, first: int, last: int) -> Ints:
        """(rows, parts): of the pieces [first, last); column by column in memory, which adds up quickly."""
        starts = self._steps.starts
        parts = np.zeros((len(PART_ORDER), starts[last] - starts[first]), np.int64).T
        for piece, columns in enumerate(self._steps.parts(first, last), first):
            rows = slice(starts[piece] - starts[first], starts[piece + 1] - starts[first])
            for part, column in columns.items():
                parts[rows, PLACE[part]] = column
        return parts

    def _piece(self, piece: int) -> Ints:
        """What was unpacked last is asked for again, mostly."""
        if self._unpacked is None or self._unpacked[0] != piece:
            begin, end = self._steps.starts[piece : piece + 2]
            parts = self._recorded(piece, piece + 1)
            carved = slice(*self._carved_rows.searchsorted((begin, end)))
            parts[self._carved_rows[carved] - begin] = self._carved[carved]
            self._unpacked = piece, parts
        return self._unpacked[1]
