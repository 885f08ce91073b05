"""Requests, steps and stalls as packed columns: what the page draws over time.

A request's phases lie end to end, so that each one's end is the next one's begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from phasetrace.analyze.attribution import stretches
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Breakdown, Phase, Request, RequestBreakdown, RequestStatus
from phasetrace.render.html import steps
from phasetrace.render.html.blame import interference, stalls
from phasetrace.render.html.columns import UNKNOWN, packed, ticks
from phasetrace.render.html.safe import safe

Json = dict[str, Any]

MOST_REQUESTS = 10_000  # the slowest: who has more asks about those
LONGEST_ID = 120
PLACE = {phase: place for place, phase in enumerate(Phase)}


def content(b: Breakdown, table: StepTable) -> Json | None:
    """All that has a time; None where nothing has."""
    every = [*b.requests, *b.warm_up, *map(_broken_off, b.failed)]
    if not every:
        return None
    slowest = sorted(every, key=lambda r: r.e2e_ns, reverse=True)[:MOST_REQUESTS]
    shown = sorted(slowest, key=lambda r: r.request.arrival_ns)
    start = shown[0].request.arrival_ns
    kept = steps.kept(slowest, table)
    place = {r.request.id: i for i, r in enumerate(shown)}
    return {
        "start_ns": start,
        "left_out": len(every) - len(shown),
        "requests": _requests(shown, start, table, kept),
        "steps": steps.content(b.recording, table, kept, start),
        "stalls": stalls(b.stalls, place, start),
        "interference": interference(b.interference, place),
    }


def _requests(shown: Sequence[RequestBreakdown], start: int, table: StepTable, kept: steps.Kept) -> Json:
    pieces = [list(stretches(r.request)) for r in shown]
    flat = [piece for of_one in pieces for piece in of_one]
    rows = [kept.tokens(r.request, table) for r in shown]
    return {
        "ids": safe([r.request.id for r in shown], LONGEST_ID),
        "names": safe([r.request.external_id for r in shown], LONGEST_ID),
        "arrival": packed(ticks(r.request.arrival_ns, start) for r in shown),
        "pieces": packed(len(of_one) for of_one in pieces),
        "piece_phase": packed(PLACE[piece.phase] for piece in flat),
        "piece_end": packed(ticks(piece.end_ns, start) for piece in flat),
        "e2e_ns": packed(r.e2e_ns for r in shown),
        "ttft_ns": packed(_known(r.ttft_ns) for r in shown),
        "tpot_ns": packed(_known(r.tpot_ns) for r in shown),
        "prompt": packed(_known(r.request.prompt_tokens) for r in shown),
        "cached": packed(_known(r.request.cached_tokens) for r in shown),
        "output": packed(_known(r.request.output_tokens) for r in shown),
        "apart": packed(int(r.warm_up or r.request.status is not RequestStatus.OK) for r in shown),
        "several": packed(int(any(y.tokens != 1 for y in r.request.yields)) for r in shown),
        "warm_up": packed(int(r.warm_up) for r in shown),
        "first_row": packed(first for first, _ in rows),
        "end_row": packed(end for _, end in rows),
        "ended": safe([_ended(r.request) for r in shown], LONGEST_ID),
        "chunks": [_chunks(r.request, table, kept) for r in shown],
    }


def _known(number: float | None) -> int:
    return UNKNOWN if number is None or not math.isfinite(number) else round(number)


def _broken_off(request: Request) -> RequestBreakdown:
    """A request that failed or was cut off, as far as it came."""
    marks = (request.received_ns, request.scheduled_ns, request.first_token_ns, request.last_token_ns)
    end = max(request.arrival_ns, *(t for t in (*marks, request.finished_ns) if t is not None), 0)
    whole = replace(request, finished_ns=end)
    return RequestBreakdown(whole, (), end - request.arrival_ns, None, None)


def _ended(request: Request) -> str | None:
    if request.status is not RequestStatus.OK:
        return f"{request.status} ({request.error_type})" if request.error_type else request.status.value
    reasons = {request.finish_reason, *(s.finish_reason for s in request.sequences)} - {None}
    return request.finish_reason or next(iter(sorted(r for r in reasons if r)), None)


def _chunks(request: Request, table: StepTable, kept: steps.Kept) -> list[list[int]]:
    """Rows of the steps that read the prompt, with the positions that they computed."""
    found = ((kept.row(request, chunk.step, table), chunk.tokens) for chunk in request.prefill_chunks)
    return [[row, tokens] for row, tokens in found if row != UNKNOWN]
