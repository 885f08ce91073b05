"""The client itself held the request back (its own concurrency limit, pool or semaphore)."""

from __future__ import annotations

import re

from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Rule, Words
from phasetrace.advise.table.told import Told, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Goal
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Let the client keep more requests open: raise its concurrency limit (semaphore, connection pool,"
        " threads), also the connection limit of a proxy between."
    ),
    tradeoff="More open requests queue in the server instead, where they can be batched.",
    commands={},
)
BESIDE = 1.4  # times: client and server clocks of one request differ by network and noise, not by this
UNSENT = 0.6  # of what the client keeps open is inside the engine: what is missing waits before it
LIMITS = re.compile(r"connection|semaphore|client_(?:limit|pool|concurrency)|http_pool")  # the client's knobs


def in_table(view: View) -> Told | None:
    """A wait that the client states, a total beyond the server's, or requests that were never sent."""
    s, g = view.subject, view.subject.group
    total = g.client_e2e_s or s.e2e or s.ttft
    if g.client_wait_s and total and g.client_wait_s >= WORTH * total:
        return Told(
            Tier.MEASURED,
            (
                f"the client held requests for {seconds(g.client_wait_s * 1e9)} before it sent them",
                f"that is {percent(min(1.0, g.client_wait_s / total))} of what its user waits",
            ),
            gain=without(g.client_wait_s, total),
            weight=min(1.0, g.client_wait_s / total),
            seconds=g.client_wait_s,
        )
    limits = {n for p in view.pairs for n in p.differs if LIMITS.search(n.lower())}
    limited = view.contrast(*limits)
    if limited is not None:
        return tried(view, limited, " ".join(sorted(limits)))
    server = g.e2e_s
    if g.client_e2e_s and server and g.client_e2e_s >= BESIDE * server and view.goal is not Goal.TPOT:
        beside = g.client_e2e_s - server
        return Told(
            Tier.MEASURED,
            (
                f"the client counts {seconds(g.client_e2e_s * 1e9)} a request, the server"
                f" {seconds(server * 1e9)}",
            ),
            weight=beside / g.client_e2e_s,
            confidence="medium",
            seconds=beside,
        )
    inside = None if g.running is None or g.waiting is None else g.running + g.waiting
    if g.concurrency and inside is not None and g.concurrency >= 4 and inside <= UNSENT * g.concurrency:
        return Told(
            Tier.FAULT,
            (
                f"the client keeps {count(g.concurrency, 'request')} open and the engine holds {inside:,.0f}:"
                " the others wait before it",
            ),
            weight=1 - inside / g.concurrency,
        )
    pair = next((p for p in view.pairs if not p.differs and p.worse.group.client_e2e_s and not server), None)
    if pair and pair.worse.group.e2e_s is None and pair.better.group.e2e_s is not None:
        return tried(view, pair, "what stands between client and engine", sure=False)
    return None


RULE = Rule(Cause.CLIENT_GATE, WORDS, None, in_table)
