"""The times between two tokens of one sequence, over many requests that share steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.coverage import Coverage
from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import NARROW, Ints, Request

Floats = npt.NDArray[np.float64]
AT_ONCE = 1 << 16  # rows of the table whose times are looked up together


@dataclass(frozen=True, slots=True)
class TokenGaps:
    """Each gap's length, and how many tokens ended it. The first are of rows, in order; then the rest."""

    gap_ns: Ints | Floats  # a fraction where a step gave several
    tokens: Ints
    used: npt.NDArray[np.bool_]  # which rows of the table have one: less memory than its end for each
    rest_end_ns: Ints  # of requests that got several tokens a step

    @property
    def longest_ns(self) -> float | None:
        """None where there is none."""
        return float(self.gap_ns.max()) if len(self.gap_ns) else None

    def by_end(self, table: StepTable) -> Iterator[tuple[Ints, Ints | Floats, Ints]]:
        """When gaps ended, their lengths, their tokens: all of them, some at a time."""
        at = 0
        for row in range(0, len(self.used), AT_ONCE):
            end_ns = table.end_ns[row : row + AT_ONCE][self.used[row : row + AT_ONCE]]
            some = slice(at, at + len(end_ns))
            yield end_ns, self.gap_ns[some], self.tokens[some]
            at = some.stop
        yield self.rest_end_ns, self.gap_ns[at:], self.tokens[at:]


def token_gaps(requests: Iterable[Request], table: StepTable) -> TokenGaps:
    """All of these requests.

    A step's weight is the sequences that got a token from it after their first. Requests that share a stream
    add to the same steps, so this is O(steps + requests). Steps that gave several tokens a sequence share
    their time.
    """
    alike: list[tuple[int, int, int]] = []
    own: list[tuple[Floats, Ints, Ints]] = []
    for request in requests:
        decode = table.decode_rows(request)
        if decode is None:
            continue
        sequences = len(request.sequences) or 1
        if any(count.tokens != 1 for count in request.yields):
            own.append(_shared_gaps(request, decode, table, sequences))
        elif len(decode):
            alike.append((decode.begin, decode.end, sequences))
    covered = Coverage(len(table), alike)
    used, tokens = covered.rows, covered.weights
    gaps = _of_rows(table, used)
    if not own:
        return TokenGaps(gaps, tokens, used, np.zeros(0, np.int64))
    own_gaps, own_tokens, own_ends = map(np.concatenate, zip(*own, strict=True))
    return TokenGaps(np.concatenate([gaps, own_gaps]), np.concatenate([tokens, own_tokens]), used, own_ends)


def _of_rows(table: StepTable, used: npt.NDArray[np.bool_]) -> Ints:
    """From the end of the row before to that of each of these."""
    gaps: Ints = np.zeros(np.count_nonzero(used), np.int32)
    at = 0
    for row in range(0, len(used), AT_ONCE):
        end_ns = table.end_ns[row : row + AT_ONCE]
        before = table.end_ns[row - 1] if row else table.steps.began_ns(0)
        found = np.diff(end_ns, prepend=before)[used[row : row + AT_ONCE]]
        if abs(found).max(initial=0) > NARROW:
            gaps = gaps.astype(np.int64, copy=False)
        gaps[at : at + len(found)] = found
        at += len(found)
    return gaps


def _shared_gaps(
    request: Request, decode: Rows, table: StepTable, sequences: int
) -> tuple[Floats, Ints, Ints]:
    tokens: npt.NDArray[np.int64] = np.ones(len(decode), np.int64)
    for count in request.yields:
        row = table.row(decode, count.step)
        if row is not None:
            tokens[row - decode.begin] = count.tokens
    gave = tokens > 0
    times = table.end_ns[decode.begin : decode.end][gave]
    gaps = np.diff(times, prepend=request.first_token_ns or 0) / tokens[gave]
    return gaps.astype(np.float64), tokens[gave] * sequences, times
