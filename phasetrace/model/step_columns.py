"""Many steps in little memory: their times side by side, their parts packed until somebody looks at them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol, overload

import numpy as np

from phasetrace.model.columns import Ints, constant, joined
from phasetrace.model.recording import Steps
from phasetrace.model.terms import Part

_UNKNOWN = -1


class PackedParts(Protocol):
    """The parts of some steps."""

    def unpacked(self, length_ns: Ints) -> Mapping[Part, Ints]:
        """The columns, of steps of these lengths."""

    def unpacked_one(self, part: Part, length_ns: Ints) -> Ints | None:
        """The column of one part, None where there is none."""


class Times(NamedTuple):
    """When steps were: each begins `wait_ns` after the end of the one before, and takes `length_ns`."""

    begin_ns: int
    wait_ns: Ints  # the first is 0
    length_ns: Ints


@dataclass(frozen=True, slots=True)
class Piece:
    """Steps of one stream that were recorded together: all but their times."""

    process: str
    stream: int
    first_index: int
    size: int
    parts: PackedParts
    known: Mapping[str, Ints]  # the columns of `Steps` that may be unknown and are not

    def goes_on_in(self, other: Piece) -> bool:
        """Whether the other begins where this ends, with the same columns, but for the device's time."""
        return (
            (self.process, self.stream) == (other.process, other.stream)
            and self.first_index + self.size == other.first_index
            and self.known.keys() - {"device_ns"} == other.known.keys() - {"device_ns"}
        )


class StepColumns(Sequence[Steps]):
    """Steps in order of process, stream and index; as a sequence, those that follow each other are one item.

    Rows count all steps through: piece k has those from `starts[k]` to `starts[k + 1]`.

    Args:
        pieces: in any order. Their times are let go of.
    """

    def __init__(self, pieces: Iterable[tuple[Piece, Times]]) -> None:
        found = sorted(
            (pair for pair in pieces if pair[0].size),
            key=lambda pair: (pair[0].process, pair[0].stream, pair[0].first_index),
        )
        self.pieces = [piece for piece, _ in found]
        self.starts = list(accumulate((piece.size for piece in self.pieces), initial=0))
        self.firsts = [piece.first_index for piece in self.pieces]
        self.end_ns: Ints = np.empty(self.rows, np.int64)
        breaks = [self._place(start, times) for start, times in zip(self.starts, _times(found), strict=False)]
        self._breaks = joined(
            [rows for rows, _ in breaks]
        )  # rows that do not begin where the one before ends
        self._begins = joined([begins for _, begins in breaks])
        new = (k for k, (a, b) in enumerate(pairwise(self.pieces), 1) if not a.goes_on_in(b))
        self._runs = [0, *new, len(self.pieces)] if self.pieces else [0]

    def _place(self, start: int, times: Times) -> tuple[Ints, Ints]:
        ends = self.end_ns[start : start + len(times.length_ns)]
        np.cumsum(times.length_ns, out=ends)
        apart = np.flatnonzero(times.wait_ns)
        if len(apart):
            ends += np.cumsum(times.wait_ns)
        ends += times.begin_ns
        begins = ends[apart] - times.length_ns[apart]
        return np.concatenate([[start], start + apart]), np.concatenate([[times.begin_ns], begins])

    @property
    def rows(self) -> int:
        """How many steps there are."""
        return self.starts[-1]

    def begin_ns(self, begin: int, end: int) -> Ints:
        """When the steps of the rows [begin, end) began."""
        found: Ints = np.empty(end - begin, np.int64)
        if len(found):
            found[1:] = self.end_ns[begin : end - 1]
            found[0] = self.end_ns[begin - 1]
            apart = slice(*self._breaks.searchsorted((begin, end)))
            found[self._breaks[apart] - begin] = self._begins[apart]
        return found

    def began_ns(self, row: int) -> int:
        """When one step began."""
        last = self._breaks.searchsorted(row, side="right") - 1
        return int(self._begins[last] if self._breaks[last] == row else self.end_ns[row - 1])

    def length_ns(self, begin: int, end: int) -> Ints:
        """What the steps of the rows [begin, end) took."""
        return self.end_ns[begin:end] - self.begin_ns(begin, end)

    @property
    def apart(self) -> tuple[Ints, Ints]:
        """Rows that begin a piece or do not begin where the one before ends, and when they begin."""
        return self._breaks, self._begins

    def index_of(self, row: int) -> int:
        """The index of a row's step in its stream."""
        piece = self.piece_at(row)
        return self.firsts[piece] + row - self.starts[piece]

    def row_of(self, begin: int, end: int, index: int) -> int:
        """The first of the rows [begin, end), all of one stream, with a step of this index or a later one."""
        first, last = self.piece_at(begin), self.piece_at(end - 1)
        piece = bisect_right(self.firsts, index, first, last + 1) - 1
        if piece < first:
            return begin
        row = self.starts[piece] + min(index - self.firsts[piece], self.pieces[piece].size)
        return min(max(row, begin), end)

    def piece_at(self, row: int) -> int:
        """The piece that has this row."""
        return bisect_right(self.starts, row) - 1

    def parts(self, first: int, last: int) -> Iterator[Mapping[Part, Ints]]:
        """The parts of the steps of the pieces [first, last), one piece after the other."""
        for piece, length in self._lengths(first, last):
            yield piece.parts.unpacked(length)

    def part(self, part: Part, first: int, last: int) -> Ints:
        """One part of the steps of the pieces [first, last)."""
        columns = (
            (piece, piece.parts.unpacked_one(part, length)) for piece, length in self._lengths(first, last)
        )
        return joined([constant(0, piece.size) if c is None else c for piece, c in columns])

    def _lengths(self, first: int, last: int) -> Iterator[tuple[Piece, Ints]]:
        """What the steps of each piece took."""
        start = self.starts[first]
        length = self.length_ns(start, self.starts[last])
        for piece, begin in zip(self.pieces[first:last], self.starts[first:last], strict=True):
            yield piece, length[begin - start : begin - start + piece.size]

    def knowing(self, *names: str) -> Iterator[Steps]:
        """The items of which these columns are known."""
        for at, first in enumerate(self._runs[:-1]):
            if self.pieces[first].known.keys() >= set(names):
                yield self[at]

    def __len__(self) -> int:
        return len(self._runs) - 1

    @overload
    def __getitem__(self, item: int) -> Steps: ...
    @overload
    def __getitem__(self, item: slice) -> Sequence[Steps]: ...
    def __getitem__(self, item: int | slice) -> Steps | Sequence[Steps]:
        if isinstance(item, slice):
            return [self[at] for at in range(len(self))[item]]
        at = range(len(self))[item]
        numbers = range(self._runs[at], self._runs[at + 1])
        pieces = self.pieces[numbers.start : numbers.stop]
        begin, end = self.starts[numbers.start], self.starts[numbers.stop]
        names = {name for piece in pieces for name in piece.known}
        known = {
            name: joined([p.known.get(name, constant(_UNKNOWN, p.size)) for p in pieces]) for name in names
        }
        first = pieces[0]
        return Steps(
            process=first.process,
            stream=first.stream,
            first_index=first.first_index,
            begin_ns=self.begin_ns(begin, end),
            end_ns=self.end_ns[begin:end],
            parts=_PartsOf(self, numbers),
            **known,
        )


def columns_of(steps: Sequence[Steps]) -> StepColumns:
    """The same steps in columns."""
    return steps if isinstance(steps, StepColumns) else StepColumns(map(_piece, steps))


def _piece(steps: Steps) -> tuple[Piece, Times]:
    begin, end = steps.begin_ns, steps.end_ns
    times = Times(int(begin[0]) if len(steps) else 0, waits(begin, end), end - begin)
    parts = _Held(steps.parts)
    return Piece(steps.process, steps.stream, steps.first_index, len(steps), parts, steps.known()), times


def waits(begin_ns: Ints, end_ns: Ints) -> Ints:
    """From the end of the step before to each step's begin; 0 for the first."""
    found: Ints = begin_ns - np.concatenate([begin_ns[:1], end_ns[:-1]])
    return found


def _times(pieces: list[tuple[Piece, Times]]) -> Iterator[Times]:
    """All of them, kept by nobody else afterwards."""
    pieces.reverse()
    while pieces:
        yield pieces.pop()[1]


@dataclass(frozen=True, slots=True)
class _Held:
    """Parts that are there already."""

    columns: Mapping[Part, Ints]

    def unpacked(self, _: Ints) -> Mapping[Part, Ints]:
        return self.columns

    def unpacked_one(self, part: Part, _: Ints) -> Ints | None:
        return self.columns.get(part)


class _PartsOf(Mapping[Part, Ints]):
    """The parts of pieces that follow each other, unpacked when they are first looked at."""

    def __init__(self, steps: StepColumns, pieces: range) -> None:
        self._steps = steps
        self._pieces = pieces

    @cached_property
    def _columns(self) -> Mapping[Part, Ints]:
        held = list(self._steps.parts(self._pieces.start, self._pieces.stop))
        if len(held) == 1:
            return held[0]
        sizes = [self._steps.pieces[piece].size for piece in self._pieces]
        return {
            part: joined([h.get(part, constant(0, n)) for h, n in zip(held, sizes, strict=True)])
            for part in Part
            if any(part in h for h in held)
        }

    def __getitem__(self, part: Part) -> Ints:
        return self._columns[part]

    def __iter__(self) -> Iterator[Part]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
