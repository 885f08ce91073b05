"""Tells warm-up apart: requests that paid for compilation, autotuning, lazy loading or a first allocation.

Judged by time per token against the requests that follow, so that a request whose prompt was computed in full
is not called warm-up because later ones found their prefix in a cache; and by the tokens of whole steps, so
that one which shared its steps with the prompts of others is not, either.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Phase, RequestBreakdown

SLOWER = 2.0  # times what the later requests lead one to expect; below, noise of a shared machine reaches it
LEAST_EXCESS_NS = 20_000_000  # less than a person or a p99 notices is not worth setting a request aside
SHARE = 0.25  # of a request's time: with less one-off work in it, it still tells of the others
FEWEST_LATER = 2  # one later request is no reference: either of the two may be the odd one
MOST_LEADING = 4  # of a model's first requests: compilation repeats for a few new shapes, then stops
FIRST_STEPS = 4  # decode graphs are compiled or captured in the first steps that have their shape
STEP_FACTOR = 10.0  # a first step this many times the median step is one-off work, not a longer context
FEWEST_STEPS = 8  # fewer give no median
FULLER = 2  # times the tokens of the median step: a step that reads somebody's prompt is no slow step


def excess_by_request(requests: Iterable[RequestBreakdown], table: StepTable) -> dict[str, int]:
    """Request id -> time spent on one-off work; each process warms up each model for itself."""
    groups: dict[tuple[str, str | None], list[RequestBreakdown]] = defaultdict(list)
    for request in sorted(requests, key=lambda r: (r.request.arrival_ns, r.request.id)):
        groups[request.request.process, request.request.model].append(request)
    return {
        request.request.id: ns
        for group in groups.values()
        for request, ns in zip(group, excess_ns(group, table), strict=True)
    }


def tell_apart(
    requests: Sequence[RequestBreakdown], excess: Mapping[str, int]
) -> tuple[list[RequestBreakdown], list[RequestBreakdown]]:
    """Warm-up by the `excess` of each, and the rest; where nothing would remain, nothing is set aside."""
    cold = [r for r in requests if is_warm_up(r, excess[r.request.id])]
    if len(cold) == len(requests):
        return [], list(requests)
    set_aside = {r.request.id for r in cold}
    return [replace(r, warm_up=True) for r in cold], [r for r in requests if r.request.id not in set_aside]


def excess_ns(requests: Sequence[RequestBreakdown], table: StepTable) -> list[int]:
    """The time that each request of one model, in order of arrival, spent on one-off work; 0 where none."""
    found = [_in_own_steps(request, table) for request in requests]
    for position in range(min(MOST_LEADING, len(requests) - FEWEST_LATER)):
        late = _before_first_token(requests[position], requests[position + 1 :], table)
        if late == 0:
            break
        found[position] += late
    return found


def is_warm_up(request: RequestBreakdown, excess: int) -> bool:
    """Whether so much of the request was one-off work that its times say nothing about the others."""
    return excess >= LEAST_EXCESS_NS and excess >= SHARE * request.e2e_ns


def _before_first_token(
    request: RequestBreakdown, later: Sequence[RequestBreakdown], table: StepTable
) -> int:
    expected = _expected_prefill(request, later, table)
    prefill = request.phase_ns(Phase.PREFILL)
    if expected is None or prefill < SLOWER * expected or prefill - expected < LEAST_EXCESS_NS:
        return 0
    return prefill - int(expected)


def _expected_prefill(
    request: RequestBreakdown, later: Sequence[RequestBreakdown], table: StepTable
) -> float | None:
    """What the later requests' prefill would have taken for as many tokens."""
    times = [r.phase_ns(Phase.PREFILL) for r in later if r.phase_ns(Phase.PREFILL)]
    if len(times) < FEWEST_LATER:
        return None
    typical = statistics.median(times)
    tokens = [count for r in later if (count := _computed_until_first_token(r, table))]
    computed = _computed_until_first_token(request, table)
    if not computed or not tokens:
        return typical
    # More tokens take longer in proportion; fewer may still take as long, since every prefill reads the
    # weights once.
    return typical * max(1.0, computed / statistics.median(tokens))


def _computed_until_first_token(request: RequestBreakdown, table: StepTable) -> int | None:
    """Tokens that the steps of its prefill computed, others' included; its own where steps do not tell."""
    rows, first_token = table.rows(request.request), request.request.first_token_ns
    if rows is None or first_token is None:
        return request.new_prompt_tokens
    computed = table.computed_tokens[rows.begin : table.after_prefill(rows, first_token).begin]
    return int(computed.sum()) if len(computed) and computed.min() != UNKNOWN else request.new_prompt_tokens


def _in_own_steps(request: RequestBreakdown, table: StepTable) -> int:
    """Time of the first decode steps beyond the request's own median step."""
    rows, first_token = table.rows(request.request), request.request.first_token_ns
    if rows is None or first_token is None:
        return 0
    decode = table.after_prefill(rows, first_token)
    if len(decode) < FEWEST_STEPS:
        return 0
    times = table.steps.length_ns(decode.begin, decode.end)
    head = times[:FIRST_STEPS]
    if head.max() <= STEP_FACTOR * times.min():
        return 0  # cheaper than the median, and true of nearly all requests
    median = float(np.median(times))
    computed = table.computed_tokens[decode.begin : decode.end]
    as_full = computed[:FIRST_STEPS] <= FULLER * max(1.0, float(np.median(computed)))  # or unknown: -1
    slow = (head > STEP_FACTOR * median) & as_full
    over = int((head[slow] - median).sum())
    return over if over >= LEAST_EXCESS_NS else 0
