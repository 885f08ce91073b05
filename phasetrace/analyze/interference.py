"""Who stretched whom: the decode time that reading one request's prompt cost the others in the same steps."""

from __future__ import annotations

import numpy as np

from phasetrace.analyze.non_negative import Floats
from phasetrace.analyze.shared_time import RowCosts, chunk_costs
from phasetrace.model import Interference, Ints

MOST_PAIRS = 1_000  # that are kept: the costliest
MOST_MEETINGS = 300_000  # of a chunk and a request that decodes beside it; of more, the costliest chunks'


def interference(costs: RowCosts) -> tuple[Interference, ...]:
    """Pairs of requests, the costliest first."""
    made = costs.made
    cost = chunk_costs(costs)
    reading = made.reading
    chosen = _costliest(cost, _victims(costs)[reading.row])
    row, by, cost = reading.row[chosen], reading.request[chosen], cost[chosen]
    request, begin, end = _decoders(costs)
    first, last = row.searchsorted(begin), row.searchsorted(end)
    met = last - first
    victim = np.repeat(request, met)
    chunk = np.repeat(first - np.concatenate([[0], np.cumsum(met)[:-1]]), met) + np.arange(met.sum())
    others = victim != by[chunk]
    victim, chunk = victim[others], chunk[others]
    pairs, place = np.unique(victim * len(made.requests) + by[chunk], return_inverse=True)
    ns = np.rint(np.bincount(place, cost[chunk], len(pairs))).astype(np.int64)
    order = np.argsort(-ns, kind="stable")[:MOST_PAIRS]
    ids = [request.id for request in made.requests]
    return tuple(
        Interference(ids[pair // len(ids)], ids[pair % len(ids)], took)
        for pair, took in zip(pairs[order].tolist(), ns[order].tolist(), strict=True)
        if took > 0
    )


def stretched_others(costs: RowCosts) -> dict[str, int]:
    """Request id -> decode time that reading its prompt cost all others together."""
    reading = costs.made.reading
    others = _victims(costs)[reading.row] - reading.again
    totals = np.bincount(reading.request, chunk_costs(costs) * others, len(costs.made.requests))
    return {r.id: round(float(ns)) for r, ns in zip(costs.made.requests, totals, strict=True)}


def _decoders(costs: RowCosts) -> tuple[Ints, Ints, Ints]:
    """Request and rows [begin, end) of all decoding, that of a request which reads its tokens again too."""
    decoding, reading = costs.made.decoding, costs.made.reading
    again = reading.row[reading.again]
    return (
        np.concatenate([decoding.request, reading.request[reading.again]]),
        np.concatenate([decoding.begin, again]),
        np.concatenate([decoding.end, again + 1]),
    )


def _victims(costs: RowCosts) -> Ints:
    """Requests that decode in each row."""
    size = len(costs.scale)
    change: Ints = np.zeros(size + 1, np.int64)
    _, begin, end = _decoders(costs)
    np.add.at(change, begin, 1)
    np.add.at(change, end, -1)
    return np.cumsum(change)[:-1]


def _costliest(cost: Floats, victims: Ints) -> Ints:
    """The chunks to look at, in order of rows."""
    order = np.argsort(-cost * victims, kind="stable")
    kept = order[np.cumsum(victims[order]) <= MOST_MEETINGS]
    return np.sort(kept[cost[kept] > 0])
