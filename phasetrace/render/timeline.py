"""When a request's tokens came and what held them up, as the steps of its stream tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from phasetrace.analyze.composition import Composition, composition
from phasetrace.analyze.stalls import CAUSES, late_tokens, readers
from phasetrace.analyze.step_parts import PART_ORDER
from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable, step_table
from phasetrace.model import Ints, Part, Recording, Request, StallCause

WORTH_NAMING = 0.1  # of what a step took too long: a part that had less to do with it only distracts


class LateToken(NamedTuple):
    """A token that came late, and why."""

    at_ns: int  # when the gap began
    token: int  # counted from 1
    gap_ns: int
    usual_ns: int
    cause: StallCause
    parts: Mapping[Part, int]  # of its step: those that overran, the largest overrun of its usual time first
    read: Mapping[str, int]  # Request.id -> tokens of its prompt that were read meanwhile, the most first


@dataclass(frozen=True, slots=True)
class Timeline:
    """The steps that a request took part in, in order."""

    request: Request
    table: StepTable
    made: Composition | None  # who else was in them
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
        row = self.table.row(self.rows, step)
        if row is None:
            return None
        return self.table.steps.began_ns(row), int(self.table.end_ns[row])

    def stalls(self) -> list[LateToken]:
        """All that stand out, in order of time."""
        late = late_tokens((self.request,), self.table, self.made, None)
        if not len(late.row):
            return []
        decode = self.table.parts.of(self.first + 1, self.rows.end)
        usual = np.median(decode, axis=0)
        found = []
        for at in range(len(late.row)):
            before, row = int(late.before[at]), int(late.row[at])
            begin, end = int(self.table.end_ns[before]), int(self.table.end_ns[row])
            took = self.table.parts.spent(before + 1, row + 1)
            found.append(
                LateToken(
                    at_ns=begin,
                    token=row - self.first + 1,
                    gap_ns=end - begin,
                    usual_ns=int(late.usual_ns[at]),
                    cause=CAUSES[late.cause[at]],
                    parts=_overran(took, usual),
                    read=readers(self.made, before, row, self.request.id),
                )
            )
        return found


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
    return Timeline(request, table, composition(recording.requests, table), rows, first)


def _overran(took: Ints, usual: Ints) -> dict[Part, int]:
    over = np.clip(took - usual, 0, None)
    columns = [int(c) for c in np.argsort(-over, kind="stable") if over[c] > WORTH_NAMING * over.sum()]
    return {PART_ORDER[c]: int(took[c]) for c in columns}
