"""Which steps a request took part in: rows, counted through all streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from phasetrace.model import Ints, Request, StepColumns


@dataclass(frozen=True, slots=True)
class Rows:
    """A run of rows of the table, half open."""

    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class StepRows:
    """Every step has a row, in order of process, stream and index."""

    steps: StepColumns
    streams: Mapping[tuple[str, int], Rows]
    # What was looked up: all parts of the analysis ask for the same requests
    _found: dict[tuple[str, int | None, int | None, int | None], Rows | None] = field(
        default_factory=dict, repr=False
    )
    _decode: dict[tuple[int, int, int, int], Rows] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return self.steps.rows

    @property
    def end_ns(self) -> Ints:
        """When each step ended."""
        return self.steps.end_ns

    @property
    def begin_ns(self) -> Ints:
        """When each step began."""
        return self.steps.begin_ns(0, len(self))

    @property
    def length_ns(self) -> Ints:
        """What each step took."""
        return self.steps.length_ns(0, len(self))

    def rows(self, request: Request) -> Rows | None:
        """The rows that the request took part in, or None where its steps were not recorded."""
        key = (request.process, request.stream, request.first_step, request.last_step)
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, process: str, stream: int | None, first: int | None, last: int | None) -> Rows | None:
        if stream is None or first is None or last is None:
            return None
        rows = self.streams.get((process, stream))
        if rows is None:
            return None
        begin = self.steps.row_of(rows.begin, rows.end, first)
        end = self.steps.row_of(rows.begin, rows.end, last + 1)
        return Rows(begin, end) if end > begin else None

    def row(self, rows: Rows, step: int) -> int | None:
        """Which of `rows`, all of one stream, is the step of this index."""
        row = self.steps.row_of(rows.begin, rows.end, step)
        return row if row < rows.end and self.steps.index_of(row) == step else None

    def after_prefill(self, rows: Rows, first_token_ns: int) -> Rows:
        """Those of `rows` that come after the step which gave the first token."""
        return Rows(self.ending_after(rows, first_token_ns), rows.end)

    def ending_after(self, rows: Rows, time_ns: int) -> int:
        """The first of `rows` that ends after a time."""
        return rows.begin + int(self.end_ns[rows.begin : rows.end].searchsorted(time_ns, side="right"))

    def beginning_before(self, rows: Rows, time_ns: int) -> int:
        """The end of those of `rows` that begin before a time; steps do not overlap."""
        row = rows.begin + int(self.end_ns[rows.begin : rows.end].searchsorted(time_ns))
        return row + 1 if row < rows.end and self.steps.began_ns(row) < time_ns else row

    def decode_rows(self, request: Request) -> Rows | None:
        """The rows of the steps that gave the request's second to last tokens; it may be without any."""
        rows, first, last = self.rows(request), request.first_token_ns, request.last_token_ns
        if rows is None or first is None or last is None:
            return None
        key = (rows.begin, rows.end, first, last)
        if key not in self._decode:
            after = self.after_prefill(rows, first)
            self._decode[key] = Rows(after.begin, self.ending_after(after, last))
        return self._decode[key]


def step_rows(steps: StepColumns) -> StepRows:
    """The rows of each stream."""
    streams: dict[tuple[str, int], Rows] = {}
    for piece, (begin, end) in zip(steps.pieces, pairwise(steps.starts), strict=True):
        key = (piece.process, piece.stream)
        streams[key] = Rows(streams[key].begin if key in streams else begin, end)
    return StepRows(steps, streams)
