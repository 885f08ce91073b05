"""When each token of a request came, and the spans that show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.mapping.span import Attributes, Link, Span, TokenSpans, derived_id
from phasetrace.model import Ints, Request, Stall
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName

MOST_VALUES = 1024  # of one attribute: backends handle longer arrays badly
STALL = 3.0  # a token that takes this many times the median wait is shown by itself


@dataclass(frozen=True, slots=True)
class TokenTimes:
    """The waits for the tokens after the first, one row a step that gave any."""

    begin_ns: Ints  # the moment of the tokens before
    end_ns: Ints
    count: Ints  # tokens of one sequence; more than one when several were guessed right
    index: Ints  # number of the first of them; the request's first token is 0

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def stalls(self) -> npt.NDArray[np.bool_]:
        """Which waits are far above the median."""
        waits = self.end_ns - self.begin_ns
        stalls: npt.NDArray[np.bool_] = waits > STALL * np.median(waits)
        return stalls

    def waits_us(self) -> Ints:
        """The wait for each single token, rounded so that sums stay within a microsecond of the truth."""
        share = np.repeat((self.end_ns - self.begin_ns) / self.count, self.count)
        since_first = np.round(np.cumsum(share) / 1000).astype(np.int64)
        since_first[1:] -= since_first[:-1].copy()
        return since_first


def token_times(request: Request, times: tuple[Ints, Ints] | None) -> TokenTimes | None:
    """When the request's tokens came; None where its steps are not known or gave less than two."""
    if times is None or request.first_step is None:
        return None
    counts = np.ones(len(times[1]), np.int64)
    for given in request.yields:
        if 0 <= given.step - request.first_step < len(counts):
            counts[given.step - request.first_step] = given.tokens
    gave = counts > 0
    ends, counts = times[1][gave], counts[gave]
    if len(ends) < 2:
        return None
    return TokenTimes(ends[:-1], ends[1:], counts[1:], np.cumsum(counts)[:-1])


def to_token_spans(
    request: Request,
    parent: Link,
    times: TokenTimes,
    most: int,
    stalls: Sequence[Stall] = (),
    places: Mapping[str, Link] = {},
) -> tuple[TokenSpans, list[Span]]:
    """One span a step as long as `most` suffices, else runs of unremarkable ones share a span.

    Args:
        request: whose tokens they are.
        parent: the span of its decode.
        times: when they came.
        most: spans.
        stalls: the late ones that are explained; each is a span with its cause.
        places: the spans of other requests, which such a span links to where they caused it.
    """
    told = {stall.end_ns: stall for stall in stalls}
    told_rows = np.flatnonzero(np.isin(times.end_ns, list(told)))
    starts = _starts(times, most, told_rows)
    ends = np.append(starts[1:], len(times)) - 1
    alone = (starts == ends) & np.isin(starts, told_rows)
    first = int(derived_id(8, request.id, "token"), 16) >> 1 | 1  # room to count up, and never 0
    trace_id, parent_id = parent
    runs = TokenSpans(
        trace_id=trace_id,
        parent_span_id=parent_id,
        first_id=first,
        begin_ns=times.begin_ns[starts[~alone]],
        end_ns=times.end_ns[ends[~alone]],
        index=times.index[starts[~alone]],
        count=np.add.reduceat(times.count, starts)[~alone],
    )
    late = []
    for number, row in enumerate(starts[alone].tolist(), first + len(runs)):
        stall = told[int(times.end_ns[row])]
        begin, end = int(times.begin_ns[row]), stall.end_ns
        span = Span(trace_id, f"{number:016x}", parent_id, SpanName.TOKEN, begin, end)
        span.attributes = _explained(int(times.index[row]), int(times.count[row]), stall)
        span.links = tuple(places[by] for by in stall.by if by in places)
        late.append(span)
    return runs, late


def _explained(index: int, count: int, stall: Stall) -> Attributes:
    found: Attributes = {A.TOKEN_INDEX: index}
    if count != 1:
        found[A.TOKEN_COUNT] = count
    return found | {A.STALL_CAUSE: stall.cause.value, A.STALL_USUAL: stall.usual_ns // 1000}


def _starts(times: TokenTimes, most: int, told: Ints) -> Ints:
    """The rows at which spans begin, `most` at most: every stall its own, the rest in runs of one length."""
    n = len(times)
    rows: Ints = np.arange(n, dtype=np.int64)
    if n <= most:
        return rows
    own = np.union1d(np.flatnonzero(times.stalls), told)
    waits = times.end_ns[own] - times.begin_ns[own]
    own = own[np.argsort(-waits, kind="stable")][: (most - 1) // 2]  # the longest, where they are too many
    borders = np.union1d(np.union1d(own, own + 1), [0])
    borders = borders[borders < n]
    stretches = len(borders) - len(own)
    run = -(-(n - len(own)) // max(1, most - len(own) - stretches))
    since_border = rows - borders[np.searchsorted(borders, rows, side="right") - 1]
    begins: Ints = rows[since_border % run == 0]
    return begins
