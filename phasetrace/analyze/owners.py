"""Which phase owns the middle and the tail of TTFT and e2e: the tail often has another owner.

Of all requests, and of those of one route, model or length of prompt where these differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from phasetrace.model import ModelFacts, Owner, Phase, PhaseTime, RequestBreakdown

PERCENTILES = (50, 95, 99)
FEWEST = 8  # requests: a percentile of fewer is one request's story
NEAR = 0.05  # of the requests, on each side of the percentile
LENGTHS = (256, 1024, 4096, 16_384, 65_536)  # prompt tokens: classes of a factor of four
MOST_GROUPS = 8  # of one kind, the largest

Metric = Callable[[RequestBreakdown], int | None]
METRICS: Mapping[str, Metric] = {"ttft_ns": lambda r: r.ttft_ns, "e2e_ns": lambda r: r.e2e_ns}
BEFORE_FIRST = (Phase.CLIENT, Phase.FRONTEND, Phase.QUEUE, Phase.PREFILL)  # in the order of time


def owners(requests: Sequence[RequestBreakdown], models: Mapping[str, ModelFacts]) -> tuple[Owner, ...]:
    """Of every metric and percentile: of all, then of each group."""
    if len(requests) < FEWEST:
        return ()
    groups = [(None, requests), *_groups(requests, models)]
    return tuple(owner for name, members in groups for owner in _of_group(name, members))


def _of_group(name: str | None, requests: Sequence[RequestBreakdown]) -> Iterator[Owner]:
    for metric, measured in METRICS.items():
        known = [(ns, r) for r in requests if (ns := measured(r)) is not None]
        if len(known) < FEWEST:
            continue
        known.sort(key=lambda pair: pair[0])
        for percentile in PERCENTILES:
            near = _near(known, percentile)
            times = [_within(metric, r, ns) for ns, r in near]
            means = {phase: sum(t.get(phase, 0) for t in times) / len(near) for phase in Phase}
            yield Owner(
                metric=metric,
                percentile=percentile,
                requests=len(near),
                ns=sum(ns for ns, _ in near) / len(near),
                phases=tuple(PhaseTime(phase, round(ns)) for phase, ns in means.items() if ns),
                group=name,
            )


def _near(known: list[tuple[int, RequestBreakdown]], percentile: int) -> list[tuple[int, RequestBreakdown]]:
    """Those around a percentile; around the 99th, at least the slowest."""
    at = percentile / 100 * (len(known) - 1)
    reach = min(NEAR, 1 - percentile / 100) * len(known)
    first = max(0, min(round(at - reach), len(known) - 1))
    return known[first : max(first + 1, round(at + reach) + 1)]


def _within(metric: str, request: RequestBreakdown, ns: int) -> dict[Phase, int]:
    """The phases inside the metric's span; what TTFT holds beyond them is preemption or handing over.

    Of an answer that came in one piece it is the writing of the rest, too.
    """
    times: dict[Phase, int] = defaultdict(int)
    for time in request.phases:
        if metric == "e2e_ns" or time.phase in BEFORE_FIRST:
            times[time.phase] += time.ns
    rest = ns - sum(times.values())
    if rest > 0:
        evicted = any(p.begin_ns < (request.request.first_token_ns or 0) for p in request.request.preemptions)
        unknown = request.request.scheduled_ns is None or request.request.received_ns is None
        if not unknown and request.in_one_piece:
            times[Phase.DECODE] = min(rest, request.phase_ns(Phase.DECODE))
            rest -= times[Phase.DECODE]
        late = Phase.UNATTRIBUTED if unknown else Phase.PREEMPTED if evicted else Phase.DELIVERY
        times[late] += rest
    return times


def _groups(
    requests: Sequence[RequestBreakdown], models: Mapping[str, ModelFacts]
) -> Iterator[tuple[str, Sequence[RequestBreakdown]]]:
    def model(r: RequestBreakdown) -> str | None:
        facts = models.get(r.request.model or "")
        return (facts.name or facts.architecture or r.request.model) if facts else r.request.model

    kinds: tuple[Callable[[RequestBreakdown], str | None], ...] = (
        lambda r: f"operation={r.request.operation}",
        lambda r: f"model={name}" if (name := model(r)) else None,
        _length,
    )
    for kind in kinds:
        groups: dict[str, list[RequestBreakdown]] = defaultdict(list)
        for request in requests:
            name = kind(request)
            if name is not None:
                groups[name].append(request)
        large = sorted(groups.items(), key=lambda item: -len(item[1]))[:MOST_GROUPS]
        if len(groups) > 1:
            yield from ((name, members) for name, members in large if len(members) >= FEWEST)


def _length(request: RequestBreakdown) -> str | None:
    tokens = request.request.prompt_tokens
    if tokens is None:
        return None
    above = next((bound for bound in LENGTHS if tokens < bound), None)
    if above is None:
        return f"prompt>={LENGTHS[-1]:,}"
    place = LENGTHS.index(above)
    return f"prompt={LENGTHS[place - 1]:,}-{above:,}" if place else f"prompt<{above:,}"
