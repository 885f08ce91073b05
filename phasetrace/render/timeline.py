"""When a request's tokens came and what held them up, as the steps of its stream tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from phasetrace.analyze.step_table import PART_ORDER, Rows, StepTable, step_table
from phasetrace.model import Ints, Part, Recording, Request

STALL = 2.0  # a gap of more than this many median gaps is one that a reader of the stream sees
LEAST_STALL_NS = 1_000_000  # and below a millisecond nobody does
WORTH_NAMING = 0.1  # of what a step took too long: a part that had less to do with it only distracts


class Stall(NamedTuple):
    """A token that came late, and how long the parts of its step took."""

    at_ns: int  # when the gap began
    token: int  # counted from 1
    gap_ns: int
    parts: Mapping[Part, int]  # those that overran, the largest overrun of its usual time first


@dataclass(frozen=True, slots=True)
class Timeline:
    """The steps that a request took part in, in order."""

    table: StepTable
    rows: Rows
    first: int  # the row of the step that gave the first token

    @property
    def token_ns(self) -> Ints:
        """When each step gave its tokens, from the first on."""
        return self.table.end_ns[self.first : self.rows.end]

    @property
    def gaps(self) -> Ints:
        """Between tokens."""
        return np.diff(self.token_ns)

    def chunk(self, step: int) -> tuple[int, int] | None:
        """When a step of this index began and ended."""
        row = self.rows.begin + int(self.table.index[self.rows.begin : self.rows.end].searchsorted(step))
        if row >= self.rows.end or self.table.index[row] != step:
            return None
        return int(self.table.begin_ns[row]), int(self.table.end_ns[row])

    def stalls(self, most: int) -> list[Stall]:
        """The longest gaps that stand out, in order of time."""
        gaps = self.gaps
        if len(gaps) < 3:
            return []
        outstanding = np.flatnonzero((gaps > STALL * np.median(gaps)) & (gaps >= LEAST_STALL_NS))
        longest = outstanding[np.argsort(-gaps[outstanding], kind="stable")][:most]
        decode = self.table.parts[self.first + 1 : self.rows.end]
        usual = np.median(decode, axis=0)
        return [self._stall(int(i), decode[i], usual) for i in sorted(longest)]

    def _stall(self, i: int, took: Ints, usual: Ints) -> Stall:
        over = np.clip(took - usual, 0, None)
        columns = [int(c) for c in np.argsort(-over, kind="stable") if over[c] > WORTH_NAMING * over.sum()]
        parts = {PART_ORDER[c]: int(took[c]) for c in columns}
        return Stall(int(self.token_ns[i]), i + 2, int(self.gaps[i]), parts)


def timeline(request: Request, recording: Recording) -> Timeline | None:
    """The request's steps; None where they were not recorded."""
    own = tuple(s for s in recording.steps if (s.process, s.stream) == (request.process, request.stream))
    table = step_table(replace(recording, steps=own))
    rows = table.rows(request)
    if rows is None:
        return None
    first = rows.begin
    if request.first_token_ns is not None:
        first = max(first, table.after_prefill(rows, request.first_token_ns).begin - 1)
    return Timeline(table, rows, first)
