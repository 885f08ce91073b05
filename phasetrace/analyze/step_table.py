"""All steps of a recording in one table: which rows a request took part in, and what they were spent on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from phasetrace.analyze.pauses import stops
from phasetrace.analyze.step_parts import StepParts
from phasetrace.analyze.step_rows import StepRows, step_rows
from phasetrace.model import Ints, Recording, Request, StepColumns, columns_of, constant, joined

UNKNOWN = -1  # in the columns of counts


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTable(StepRows):
    """Every step, a row each, ordered by process, stream and index."""

    parts: StepParts
    running: Ints
    computed_tokens: Ints
    device_ns: Ints
    proposed: Ints  # tokens speculated, to be verified


def step_table(recording: Recording) -> StepTable:
    """Lay all steps end to end, and take the garbage collector's time out of the parts it stopped."""
    steps = columns_of(recording.steps)
    where = step_rows(steps)
    stopped = stops(steps, where.streams, recording.pauses)
    return StepTable(
        steps=steps,
        streams=where.streams,
        _found=where._found,
        _decode=where._decode,
        parts=StepParts(steps, stopped, _cuts(where, recording.requests)),
        running=_counts(steps, "running"),
        computed_tokens=_counts(steps, "computed_tokens"),
        device_ns=_counts(steps, "device_ns"),
        proposed=_counts(steps, "proposed"),
    )


def _cuts(where: StepRows, requests: Iterable[Request]) -> Ints:
    """The rows in which a phase of a request begins or ends, and those after them; and where pieces begin."""
    found: list[Ints] = [np.array(where.steps.starts, np.int64)]
    for request in requests:
        rows = where.rows(request)
        if rows is None:
            continue
        evicted = chain.from_iterable((p.begin_ns, p.end_ns) for p in request.preemptions)
        marks = (request.scheduled_ns, request.first_token_ns, request.last_token_ns, request.finished_ns)
        known = [mark for mark in (*marks, *evicted) if mark is not None]
        reached = rows.begin + where.end_ns[rows.begin : rows.end].searchsorted(known, side="right")
        found += [reached, reached + 1, np.array([rows.begin, rows.end])]
    cuts = np.unique(np.concatenate(found))
    return cuts[cuts <= len(where)]


def _counts(steps: StepColumns, name: str) -> Ints:
    return joined([piece.known.get(name, constant(UNKNOWN, piece.size)) for piece in steps.pieces])
