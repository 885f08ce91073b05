"""The steps that the page keeps: when each gave its tokens, and what stood in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Ints, Recording, Request, RequestBreakdown, Steps
from phasetrace.render.html.columns import TICK_NS, UNKNOWN, packed

MOST_STEPS = 600_000  # two bytes each: with these a report is a file that one can send


@dataclass(frozen=True, slots=True)
class Kept:
    """Which rows of the step table the page has, and where each is there. UNKNOWN where it is not."""

    rows: Ints  # of the table, in order
    place: Ints  # by row of the table, and one more for the end

    def tokens(self, request: Request, table: StepTable) -> tuple[int, int]:
        """The rows that gave the request's tokens, half open; unknown where one of them is not kept."""
        rows = table.rows(request)
        if rows is None or request.first_token_ns is None:
            return UNKNOWN, UNKNOWN
        first = max(rows.begin, table.after_prefill(rows, request.first_token_ns).begin - 1)
        begin, last = int(self.place[first]), int(self.place[rows.end - 1])
        if begin < 0 or last < 0 or last - begin != rows.end - 1 - first:
            return UNKNOWN, UNKNOWN
        return begin, last + 1

    def row(self, request: Request, step: int, table: StepTable) -> int:
        """Where the page has a step of the request's stream."""
        stream = _stream(request, table)
        if stream is None:
            return UNKNOWN
        at = table.row(stream, step)
        return int(self.place[at]) if at is not None else UNKNOWN


def kept(slowest: Iterable[RequestBreakdown], table: StepTable) -> Kept:
    """All steps where they are few enough, else those of the slowest requests."""
    count = len(table)
    chosen = np.ones(count, np.bool_)
    if count > MOST_STEPS:
        chosen[:] = False
        room = MOST_STEPS
        for r in slowest:
            rows = table.rows(r.request)
            if rows is None or len(rows) > room:
                continue
            room -= int((~chosen[rows.begin : rows.end]).sum())
            chosen[rows.begin : rows.end] = True
    place: Ints = np.where(chosen, np.cumsum(chosen) - 1, UNKNOWN)
    return Kept(np.flatnonzero(chosen), place)


def content(recording: Recording, table: StepTable, kept: Kept, start: int) -> dict[str, Any] | None:
    """When they ended; sequences, queue, KV blocks and prompt tokens where known.

    `idle` is from the end of the one before to a step's begin: nearly always nothing, which packs to nothing.
    """
    if len(kept.rows) == 0:
        return None
    end = (table.end_ns[kept.rows] - start) // TICK_NS
    begin = (table.begin_ns[kept.rows] - start) // TICK_NS
    chunks = sorted(recording.steps, key=lambda s: (s.process, s.stream, s.first_index))
    columns = {
        "running": table.running[kept.rows],
        "waiting": _column(chunks, "waiting")[kept.rows],
        "kv_blocks": _column(chunks, "kv_blocks")[kept.rows],
        "prefill": prompt_tokens(recording.requests, table)[kept.rows],
    }
    known = {name: packed(c) for name, c in columns.items() if (c > 0).any()}
    return {
        "left_out": len(table) - len(kept.rows),
        "end": packed(end),
        "idle": packed(begin - np.concatenate([end[:1] * 0, end[:-1]])),
        **known,
    }


def _column(chunks: Iterable[Steps], name: str) -> Ints:
    given = [(len(c), getattr(c, name)) for c in chunks]
    return np.concatenate([np.full(n, UNKNOWN, np.int64) if c is None else c for n, c in given])


def prompt_tokens(requests: Iterable[Request], table: StepTable) -> Ints:
    """Positions of prompts that each step computed."""
    found: Ints = np.zeros(len(table), np.int64)
    for request in requests:
        stream = _stream(request, table)
        if stream is None:
            continue
        for chunk in request.prefill_chunks:
            at = table.row(stream, chunk.step)
            if at is not None:
                found[at] += chunk.tokens
    return found


def _stream(request: Request, table: StepTable) -> Rows | None:
    return None if request.stream is None else table.streams.get((request.process, request.stream))
