"""Who stretched whom: stalls and interference, by the places of the requests on the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from phasetrace.model import Interference, Stall
from phasetrace.render.html.columns import ticks

Json = dict[str, Any]

MOST_STALLS = 5_000
MOST_PAIRS = 2_000  # of who paid and whose prompt it was; the costliest
MOST_CULPRITS = 4  # of one stall


def stalls(found: Iterable[Stall], place: Mapping[str, int], start: int) -> list[Json]:
    """The longest, each with the requests that caused it."""
    return [
        {
            "request": place[s.request],
            "begin": ticks(s.begin_ns, start),
            "end": ticks(s.end_ns, start),
            "usual_ns": s.usual_ns,
            "cause": s.cause.value,
            "by": [place[ident] for ident in s.by[:MOST_CULPRITS] if ident in place],
        }
        for s in found
        if s.request in place
    ][:MOST_STALLS]


def interference(found: Iterable[Interference], place: Mapping[str, int]) -> Json:
    """What each request's prompt cost the others, in total, and the costliest pairs."""
    cost: dict[int, int] = defaultdict(int)
    pairs: list[list[int]] = []
    for i in found:
        if i.request in place and i.by in place:
            cost[place[i.by]] += i.ns
            pairs.append([place[i.request], place[i.by], i.ns])
    dearest = sorted(cost.items(), key=lambda item: -item[1])
    return {"cost": [list(item) for item in dearest], "pairs": pairs[:MOST_PAIRS]}
