"""TTFT, TPOT, ITL and e2e over requests, and throughput."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.step_table import Rows, StepTable
from phasetrace.model import Percentiles, Request, RequestBreakdown

Floats = npt.NDArray[np.float64]


def ttft_ns(request: Request) -> int | None:
    """Its begin until the user had the first of the answer, else, where that was not observed, the engine."""
    first = request.first_token_ns if request.first_output_ns is None else request.first_output_ns
    return None if first is None else first - request.begin_ns


def tpot_ns(request: Request) -> float | None:
    """The time of a token after the first, of the longest sequence.

    What follows the first of a streamed answer, spread over its tokens; one that came all at once was written
    at the engine's pace.
    """
    first, longest = request.first_token_ns, request.longest_output
    if request.finished_ns is None or first is None or longest is None or longest < 2:
        return None
    handed, last = request.first_output_ns, request.last_token_ns
    if handed is not None and last is not None and handed < last:  # before it was all written: streamed
        first = handed
    return (request.finished_ns - first) / (longest - 1)


def percentiles(requests: Sequence[RequestBreakdown], table: StepTable) -> dict[str, Percentiles]:
    """Of each metric that at least one request has."""
    columns: Mapping[str, list[float]] = {
        "ttft_ns": [float(r.ttft_ns) for r in requests if r.ttft_ns is not None],
        "tpot_ns": [r.tpot_ns for r in requests if r.tpot_ns is not None],
        "e2e_ns": [float(r.e2e_ns) for r in requests],
    }
    found = {name: _percentiles(np.array(values)) for name, values in columns.items() if values}
    gaps, weights = token_gaps([r.request for r in requests], table)
    if weights.sum() > 0:
        found["itl_ns"] = _percentiles(gaps, weights)
    return found


def throughput_tok_s(requests: Sequence[RequestBreakdown]) -> float | None:
    """Output tokens a second of the time in which at least one request was under way."""
    tokens = [r.request.output_tokens for r in requests if r.request.output_tokens is not None]
    busy = busy_ns(r.request for r in requests)
    return sum(tokens) * 1e9 / busy if tokens and busy else None


def busy_ns(requests: Iterable[Request]) -> int:
    """Length of the union of the requests' lives."""
    busy, until = 0, None
    for begin, end in sorted((r.arrival_ns, r.finished_ns or r.arrival_ns) for r in requests):
        if until is None or begin >= until:
            busy += end - begin
            until = end
        elif end > until:
            busy += end - until
            until = end
    return busy


def token_gaps(requests: Iterable[Request], table: StepTable) -> tuple[Floats, Floats]:
    """Times between two tokens of one sequence, and how many tokens came after each such time.

    A step's weight is the sequences that got a token from it after their first. Requests that share a stream
    add to the same steps, so this is O(steps + requests). Steps that gave several tokens a sequence share
    their time.
    """
    change: npt.NDArray[np.int64] = np.zeros(len(table.index) + 1, np.int64)
    own: list[tuple[Any, Any]] = []
    for request in requests:
        decode = table.decode_rows(request)
        if decode is None:
            continue
        sequences = len(request.sequences) or 1
        if any(count.tokens != 1 for count in request.yields):
            own.append(_shared_gaps(request, decode, table, sequences))
        elif len(decode):
            change[decode.begin] += sequences
            change[decode.end] -= sequences
    gaps = np.diff(table.end_ns, prepend=table.begin_ns[:1] if len(table.index) else 0).astype(np.float64)
    weights = np.cumsum(change)[: len(gaps)].astype(np.float64)
    used = weights > 0
    all_gaps = [gaps[used], *(pair[0] for pair in own)]
    all_weights = [weights[used], *(pair[1] for pair in own)]
    return np.concatenate(all_gaps), np.concatenate(all_weights)


def _shared_gaps(request: Request, decode: Rows, table: StepTable, sequences: int) -> tuple[Floats, Floats]:
    index = table.index[decode.begin : decode.end]
    tokens: npt.NDArray[np.int64] = np.ones(len(decode), np.int64)
    for count in request.yields:
        at = int(index.searchsorted(count.step))
        if at < len(index) and index[at] == count.step:
            tokens[at] = count.tokens
    gave = tokens > 0
    times = table.end_ns[decode.begin : decode.end][gave]
    gaps = np.diff(times, prepend=request.first_token_ns or 0) / tokens[gave]
    return gaps.astype(np.float64), (tokens[gave] * sequences).astype(np.float64)


def _percentiles(values: Floats, weights: Floats | None = None) -> Percentiles:
    if weights is None:
        p50, p95, p99 = np.percentile(values, [50, 95, 99])
        return Percentiles(float(p50), float(p95), float(p99))
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array([0.50, 0.95, 0.99]) * reached[-1])
    p50, p95, p99 = values[order][np.minimum(places, len(values) - 1)]
    return Percentiles(float(p50), float(p95), float(p99))
