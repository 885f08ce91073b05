"""TTFT, TPOT, ITL and e2e over requests, and throughput."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from phasetrace.analyze.token_gaps import Floats, TokenGaps
from phasetrace.model import Ints, Percentiles, Request, RequestBreakdown

PERCENTS = (50, 95, 99)


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


def percentiles(requests: Sequence[RequestBreakdown], gaps: TokenGaps) -> dict[str, Percentiles]:
    """Of each metric that at least one request has; `gaps`, between their tokens, lose their order."""
    columns: Mapping[str, list[float]] = {
        "ttft_ns": [float(r.ttft_ns) for r in requests if r.ttft_ns is not None],
        "tpot_ns": [r.tpot_ns for r in requests if r.tpot_ns is not None],
        "e2e_ns": [float(r.e2e_ns) for r in requests],
    }
    found = {name: _percentiles(np.array(values)) for name, values in columns.items() if values}
    if gaps.tokens.sum() > 0:
        found["itl_ns"] = weighted(gaps.gap_ns, gaps.tokens)
    return found


def throughput_tok_s(requests: Sequence[RequestBreakdown]) -> float | None:
    """Output tokens a second of the time in which at least one request was under way."""
    tokens = [r.request.output_tokens for r in requests if r.request.output_tokens is not None]
    busy = busy_ns(r.request for r in requests)
    return sum(tokens) * 1e9 / busy if tokens and busy else None


def busy_ns(requests: Iterable[Request]) -> int:
    """Length of the union of the requests' lives."""
    return sum(busy_ns_each(list(requests)))


def busy_ns_each(requests: Sequence[Request]) -> list[int]:
    """What each request's life adds to the union of those that began before it."""
    added, until = [0] * len(requests), None
    lives = sorted((r.arrival_ns, r.finished_ns or r.arrival_ns, at) for at, r in enumerate(requests))
    for begin, end, at in lives:
        if until is None or begin >= until:
            added[at], until = end - begin, end
        elif end > until:
            added[at], until = end - until, end
    return added


def weighted(values: Ints | Floats, weights: Ints) -> Percentiles:
    """The first value by which so many percent of all weights are reached; `values` lose their order."""
    if weights.strides == (0,) or (weights == weights[0]).all():
        p50, p95, p99 = _equally_weighted(values, int(weights[0]))
    else:
        order = np.argsort(values)
        reached = np.cumsum(weights[order])
        places = np.searchsorted(reached, np.array(PERCENTS) / 100 * reached[-1])
        p50, p95, p99 = values[order[np.minimum(places, len(values) - 1)]]
    return Percentiles(float(p50), float(p95), float(p99))


def _equally_weighted(values: Ints | Floats, weight: int) -> Any:
    """The same for millions of values, without sorting or copying them."""
    count = len(values)
    shares = (percent / 100 * (count * weight) for percent in PERCENTS)
    places = [bisect_left(range(count), share, key=lambda at: (at + 1) * weight) for share in shares]
    places = [min(place, count - 1) for place in places]
    values.partition(places)
    return values[places]


def _percentiles(values: Floats) -> Percentiles:
    p50, p95, p99 = np.percentile(values, PERCENTS)
    return Percentiles(float(p50), float(p95), float(p99))
