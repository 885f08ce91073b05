"""Tokens that came much later than a request's others: found, timed, and put down to what held them up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.composition import Composition
from phasetrace.analyze.non_negative import Floats
from phasetrace.analyze.step_parts import GC_COLUMN, PART_ORDER
from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable
from phasetrace.analyze.warm_up import STEP_FACTOR
from phasetrace.model import Ints, Part, Request, Stall, StallCause

LATE = 3.0  # times the usual time between tokens: what the spans of tokens call a stall
LEAST_NS = 1_000_000  # nobody sees less
SAMPLE = 128  # times at most that the usual one is the median of: more do not move it
FEWEST = 8  # times between tokens: fewer have no usual one
MOST = 1_000  # stalls that are told one by one, the longest
OWNS = 0.5  # of what a token came too late: then a cause is the cause
DEVICE = (Part.FORWARD, Part.ENCODE)
CONSUMER = (Part.STREAM,)

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Late:
    """Late tokens, column by column: the row of each, and that of the token before it."""

    request: Ints  # its place among those asked about
    before: Ints
    row: Ints
    usual_ns: Ints
    cause: Ints  # places in CAUSES


CAUSES = tuple(StallCause)


def late_tokens(
    requests: Sequence[Request], table: StepTable, made: Composition | None, read_ns: Floats | None
) -> Late:
    """All of them; `read_ns` is what reading prompts took in each row, where the cost of a step is known."""
    found: list[tuple[Ints, ...]] = []
    parts: list[Floats] = []
    for place, request in enumerate(requests):
        rows = table.decode_rows(request)
        if not rows or len(rows) < FEWEST or rows.begin == 0:
            continue
        gave = _gave(request, rows, table)
        gaps = np.diff(table.end_ns[gave])
        usual = _usual(gaps)
        if gaps.max(initial=0) < max(LATE * usual, usual + LEAST_NS):
            continue
        late = np.flatnonzero((gaps > LATE * usual) & (gaps >= usual + LEAST_NS))
        if len(late):
            size = np.ones(len(late), np.int64)
            found.append((place * size, gave[late], gave[late + 1], usual * size))
            mean = table.parts.spent(rows.begin, rows.end) / max(1, _length(table, rows))
            parts.append(np.outer(size, mean * usual))
    if not found:
        nothing = np.zeros(0, np.int64)
        return Late(nothing, nothing, nothing, nothing, nothing)
    whose, before, row, usual_ns = (np.concatenate(column) for column in zip(*found, strict=True))
    took = _took(table, before, row)
    over: Floats = np.clip(took - np.concatenate(parts), 0, None)
    excess = np.maximum(table.end_ns[row] - table.end_ns[before] - usual_ns, 1)
    judge = _Judge(requests, table, made, read_ns, whose, before, row, over, excess)
    return Late(whose, before, row, usual_ns, judge.causes())


def told(
    late: Late, requests: Sequence[Request], table: StepTable, made: Composition | None
) -> tuple[Stall, ...]:
    """The longest, one by one."""
    gaps = table.end_ns[late.row] - table.end_ns[late.before]
    found = []
    for at in np.argsort(-gaps, kind="stable")[:MOST].tolist():
        request, before, row = requests[late.request[at]], int(late.before[at]), int(late.row[at])
        cause = CAUSES[late.cause[at]]
        by = readers(made, before, row, request.id) if cause is StallCause.OTHERS_PREFILL else {}
        begin, end = int(table.end_ns[before]), int(table.end_ns[row])
        found.append(Stall(request.id, begin, end, int(late.usual_ns[at]), cause, tuple(by)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Judge:
    requests: Sequence[Request]
    table: StepTable
    made: Composition | None
    read_ns: Floats | None
    request: Ints
    before: Ints
    row: Ints
    over: Floats  # (stalls, parts): beyond what the part usually takes
    excess: Ints

    def causes(self) -> Ints:
        """The first that owns the stall."""
        host = [p for p in PART_ORDER if p not in (*DEVICE, *CONSUMER, Part.GC)]
        tests = {
            StallCause.PREEMPTION: self._evicted(),
            StallCause.GC: self._owns(self.over[:, GC_COLUMN]),
            StallCause.OTHERS_PREFILL: self._others_prefill(),
            StallCause.CONSUMER: self._owns(self._part(CONSUMER)),
            StallCause.HOST: self._owns(self._part(host)),
            StallCause.COMPILE: self._owns(self._part(DEVICE)) & self._new_shape(),
        }
        found = np.full(len(self.row), CAUSES.index(StallCause.UNKNOWN))
        for cause, holds in reversed(list(tests.items())):
            found[holds] = CAUSES.index(cause)
        return found

    def _owns(self, ns: Floats) -> Flags:
        return np.asarray(ns >= OWNS * self.excess)

    def _part(self, parts: Sequence[Part]) -> Floats:
        found: Floats = self.over[:, [PART_ORDER.index(part) for part in parts]].sum(axis=1)
        return found

    def _evicted(self) -> Flags:
        begin, end = self.table.end_ns[self.before].tolist(), self.table.end_ns[self.row].tolist()
        whose = (self.requests[place].preemptions for place in self.request.tolist())
        return np.array(
            [
                any(p.begin_ns < e and p.end_ns >= b for p in intervals)
                for intervals, b, e in zip(whose, begin, end, strict=True)
            ],
            np.bool_,
        )

    def _others_prefill(self) -> Flags:
        if self.made is None:
            return np.zeros(len(self.row), np.bool_)
        if self.read_ns is not None:
            return self._owns(_between(self.read_ns, self.before, self.row))
        tokens = _between(self.made.prompt.astype(np.float64), self.before, self.row)
        return np.asarray((tokens > 0) & self._owns(self._part(DEVICE)))

    def _new_shape(self) -> Flags:
        """A batch size that its stream had not had, and so long that it is no matter of the batch."""
        table = self.table
        new = np.zeros(len(table), np.bool_)
        for rows in table.streams.values():
            _, first = np.unique(table.running[rows.begin : rows.end], return_index=True)
            new[rows.begin + first] = True
        usual = table.end_ns[self.row] - table.end_ns[self.before] - self.excess
        new[[rows.begin + 1 for rows in table.streams.values() if len(rows) > 1]] = True
        return np.asarray(new[self.row] & (self.excess > (STEP_FACTOR - 1) * usual))


def _gave(request: Request, rows: Rows, table: StepTable) -> Ints:
    """The rows that gave tokens, from the first one on."""
    gave = np.arange(rows.begin - 1, rows.end)
    nothing = [count.step for count in request.yields if count.tokens == 0]
    if nothing:
        gave = gave[~np.isin(gave, [row for step in nothing if (row := table.row(rows, step)) is not None])]
    return gave


def _usual(gaps: Ints) -> int:
    """The median time between tokens, of some that lie evenly."""
    if not len(gaps):
        return 0
    some = gaps[:: -(-len(gaps) // SAMPLE)]
    return int(np.partition(some, len(some) // 2)[len(some) // 2])


def _took(table: StepTable, before: Ints, row: Ints) -> Ints:
    """Time of each part in the rows after `before` until `row`, mostly one."""
    took = table.parts.at(row)
    for at in np.flatnonzero(row - before > 1).tolist():
        took[at] = table.parts.spent(int(before[at]) + 1, int(row[at]) + 1)
    return took


def _length(table: StepTable, rows: Rows) -> int:
    return int(table.end_ns[rows.end - 1]) - table.steps.began_ns(rows.begin)


def _between(column: Floats, before: Ints, row: Ints) -> Floats:
    sums = np.concatenate([[0.0], np.cumsum(column)])
    found: Floats = sums[row + 1] - sums[before + 1]
    return found


def readers(made: Composition | None, before: int, row: int, own: str) -> dict[str, int]:
    """Whose prompts were read in the rows after `before` up to `row`, and how many tokens, the most first."""
    if made is None:
        return {}
    first, last = made.reading.row.searchsorted([before + 1, row + 1])
    tokens: dict[str, int] = {}
    for at in range(first, last):
        ident = made.requests[made.reading.request[at]].id
        tokens[ident] = tokens.get(ident, 0) + int(made.reading.tokens[at])
    tokens.pop(own, None)
    return dict(sorted(tokens.items(), key=lambda item: -item[1]))
