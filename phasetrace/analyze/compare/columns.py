"""Each metric as a quotient of sums over requests, so that drawing requests again is a matrix product.

TTFT and e2e are sums over requests by their number, TPOT is time by tokens, throughput is tokens by the time
in which any request was under way: each request's is what its life adds to those of the ones before it.
These are the means that predictions are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from phasetrace.analyze.metrics import busy_ns_each
from phasetrace.analyze.token_gaps import Floats
from phasetrace.model import RequestBreakdown

S = 1e9  # nanoseconds
Quotient = tuple[Floats, Floats]  # one of each a request; 0 by 0 where it is unknown


def quotients(requests: Sequence[RequestBreakdown]) -> dict[str, Quotient]:
    """Numerator and denominator of every metric."""
    tokens = np.array([max(0, (r.request.longest_output or 1) - 1) for r in requests], float)
    output = np.array([r.request.output_tokens or 0 for r in requests], float)
    return {
        "ttft_ns": _known([r.ttft_ns for r in requests], np.ones(len(requests))),
        "tpot_ns": _known([r.tpot_ns for r in requests], tokens),
        "e2e_ns": _known([r.e2e_ns for r in requests], np.ones(len(requests))),
        "throughput_tok_s": (output, _busy_s(requests)),
    }


def at_length(requests: Sequence[RequestBreakdown], lengths: Floats) -> dict[str, Quotient] | None:
    """What depends on how long answers are, had they been `lengths` tokens at their own TPOT.

    Where a request has none, as with an answer of one token, at that of all; None where nothing has one.
    """
    time, tokens = quotients(requests)["tpot_ns"]
    if not tokens.any():
        return None
    tpot = np.divide(time, tokens, out=np.full(len(time), time.sum() / tokens.sum()), where=tokens > 0)
    own = np.array([r.request.longest_output or 0 for r in requests], float)
    known = (own > 0) & (lengths > 0)
    more = np.where(known, lengths - own, 0.0)
    e2e = np.array([r.e2e_ns for r in requests], float)
    then = np.maximum(e2e + more * tpot, 0.0)
    output = np.array([r.request.output_tokens or 0 for r in requests], float)
    scale = np.divide(lengths, own, out=np.ones(len(own)), where=known)
    longer = np.divide(then, e2e, out=np.ones(len(own)), where=e2e > 0)
    return {
        "e2e_ns": (then, np.ones(len(requests))),
        "throughput_tok_s": (output * scale, _busy_s(requests) * longer),
    }


def _known(values: Sequence[float | None], weights: Floats) -> Quotient:
    known = np.array([value is not None for value in values], bool)
    found = np.array([0.0 if value is None else value for value in values], float)
    return found * weights * known, weights * known


def _busy_s(requests: Sequence[RequestBreakdown]) -> Floats:
    return np.array(busy_ns_each([r.request for r in requests]), float) / S
