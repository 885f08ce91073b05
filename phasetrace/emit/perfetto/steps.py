"""An engine's steps and what they show over time, and the stops of whole processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from phasetrace.emit.perfetto.tracks import Event, Line, Tracks
from phasetrace.model import Ints, Recording, Steps

_RUNNING, _WAITING = ("sequences", "running"), ("requests", "waiting")  # Perfetto shows a counter's two names
_KV, _PROMPT = ("KV blocks", "used"), ("prompt tokens", "read")
_LINE = "engine steps"
_READ = " ".join(_PROMPT)
_ENDS_WITH_STEPS = (_RUNNING, _PROMPT)  # zero while the engine has nothing to do


def steps(recording: Recording, tracks: Tracks) -> Iterator[Event]:
    """A line of slices for the steps of each process, more where it runs several streams at once."""
    read = _prompt_tokens(recording)
    free: dict[str, list[int]] = {}  # process -> until when each of its lines is taken
    for piece in sorted((s for s in recording.steps if len(s)), key=lambda s: int(s.begin_ns[0])):
        ends = free.setdefault(piece.process, [])
        begin, end = int(piece.begin_ns[0]), int(piece.end_ns[-1])
        place = next((n for n, until in enumerate(ends) if until <= begin), len(ends))
        ends[place:] = [end, *ends[place + 1 :]]
        name = _LINE if place == 0 else f"{_LINE} {place + 1}"
        yield from tracks.line(piece.process, name, name)
        line = tracks.find(piece.process, name)
        assert line is not None
        prompt = read.get((piece.process, piece.stream, piece.first_index))
        yield from _slices(piece, prompt, line, tracks)
        yield from _counters(piece, prompt, line, name.removeprefix(_LINE), tracks)


def pauses(recording: Recording, tracks: Tracks) -> Iterator[Event]:
    """Stops of whole processes, such as the garbage collector's."""
    for pause in sorted(recording.pauses, key=lambda p: (p.process, p.begin_ns, -p.end_ns)):
        yield from tracks.line(pause.process, "pauses", "pauses")
        line = tracks.find(pause.process, "pauses")
        assert line is not None
        yield tracks.slice(line, "pause", pause.kind, pause.begin_ns, pause.end_ns, pause.detail)


def stages(recording: Recording, tracks: Tracks) -> Iterator[Event]:
    """What the start of an engine consisted of; those inside of another one come after it."""
    for stage in sorted(recording.stages, key=lambda s: (s.process, s.begin_ns, -s.end_ns)):
        yield from tracks.line(stage.process, "start", "start")
        line = tracks.find(stage.process, "start")
        assert line is not None
        yield tracks.slice(line, "stage", stage.name, stage.begin_ns, stage.end_ns, {})


def _prompt_tokens(recording: Recording) -> dict[tuple[str, int, int], Ints]:
    """Positions of prompts that each step read, by process, stream and first index of its piece."""
    found: dict[tuple[str, int, int], Ints] = {}
    by_stream: dict[tuple[str, int], list[tuple[int, Ints]]] = {}
    for piece in recording.steps:
        column = found[piece.process, piece.stream, piece.first_index] = np.zeros(len(piece), np.int64)
        by_stream.setdefault((piece.process, piece.stream), []).append((piece.first_index, column))
    for request in recording.requests:
        for first, column in by_stream.get((request.process, request.stream or 0), ()):
            for chunk in request.prefill_chunks:
                if 0 <= chunk.step - first < len(column):
                    column[chunk.step - first] += chunk.tokens
    return found


def _slices(piece: Steps, prompt: Ints | None, line: Line, tracks: Tracks) -> Iterator[Event]:
    columns: dict[str, Ints] = {
        name: column
        for name, column in (
            (" ".join(_RUNNING), piece.running),
            (_READ, prompt),
            ("tokens given", piece.new_tokens),
            ("positions computed", piece.computed_tokens),
            ("device ns", piece.device_ns),
            *((f"{part.value} ns", column) for part, column in piece.parts.items()),
        )
        if column is not None
    }
    names = list(columns)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    times = zip(piece.begin_ns.tolist(), piece.end_ns.tolist(), strict=True)
    for number, ((begin, end), values) in enumerate(zip(times, rows, strict=True)):
        about: dict[str, Any] = {"step": piece.first_index + number}
        about |= {name: value for name, value in zip(names, values, strict=True) if value}
        yield tracks.slice(line, "step", _what(about), begin, end, about)


def _what(about: dict[str, Any]) -> str:
    """What a step did. A row that decodes computes a position, one that reads a prompt may compute many."""
    prompt = about.get(_READ, 0)
    if not prompt:
        return "decode"
    more = about.get("positions computed", prompt) > prompt
    return "prefill and decode" if more else "prefill"


def _counters(piece: Steps, prompt: Ints | None, line: Line, suffix: str, tracks: Tracks) -> Iterator[Event]:
    columns = (
        (_RUNNING, piece.running),
        (_WAITING, piece.waiting),
        (_KV, piece.kv_blocks),
        (_PROMPT, prompt),
    )
    for names, column in columns:
        if column is None or not column.any():
            continue
        changed = np.flatnonzero(np.diff(column, prepend=column[0] - 1))
        for row in changed.tolist():
            yield tracks.count(line, names, suffix, int(piece.begin_ns[row]), int(column[row]))
        if names in _ENDS_WITH_STEPS:
            yield tracks.count(line, names, suffix, int(piece.end_ns[-1]), 0)
