"""A breakdown -> the trace event JSON that Perfetto opens: to be looked at, not to be read back.

Each process has a line of its engine's steps, counters over them (sequences that run, requests that wait, KV
blocks, prompt tokens read), its pauses, its start, and a line a request with its phases, prompt chunks and
tokens. Arrows lead from the reading of a prompt to the tokens of others that had to wait for it. The category
of a request's slices says what became of it: sums over `diagnosed` are what `diagnose` shows, where what lies
in `preempted` is taken from the phase around it.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from phasetrace.emit.perfetto.arrows import arrows
from phasetrace.emit.perfetto.requests import requests
from phasetrace.emit.perfetto.steps import pauses, stages, steps
from phasetrace.emit.perfetto.tracks import Event, Tracks
from phasetrace.model import Breakdown

_FLUSHED = 4096  # events that are written at once


def to_perfetto(breakdown: Breakdown) -> Iterator[bytes]:
    """One document, in pieces. Times count from the first thing that happened: so they keep nanoseconds."""
    yield b'{"displayTimeUnit":"ms","traceEvents":['
    written: list[bytes] = []
    between = b""
    for event in _events(breakdown):
        written.append(orjson.dumps(event))
        if len(written) >= _FLUSHED:
            yield between + b",\n".join(written)
            between, written = b",\n", []
    if written:
        yield between + b",\n".join(written)
    yield b"]}\n"


def _events(breakdown: Breakdown) -> Iterator[Event]:
    recording = breakdown.recording
    begins = [request.arrival_ns for request in recording.requests]
    begins += [int(piece.begin_ns[0]) for piece in recording.steps if len(piece)]
    begins += [pause.begin_ns for pause in recording.pauses]
    begins += [stage.begin_ns for stage in recording.stages]
    tracks = Tracks(recording.processes, min(begins, default=0))
    yield from steps(recording, tracks)
    yield from pauses(recording, tracks)
    yield from stages(recording, tracks)
    yield from requests(breakdown, tracks)
    yield from arrows(breakdown, tracks)
