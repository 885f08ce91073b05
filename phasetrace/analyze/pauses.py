"""Pauses of a process: which steps they stopped, and how they are taken out of the parts of those steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from phasetrace.analyze.step_rows import Rows
from phasetrace.model import Ints, Pause, StepColumns


class Stops(NamedTuple):
    """What pauses took of steps, in order of rows. Columns of one length; a step may be stopped twice."""

    row: Ints
    begin: Ints  # from the step's own begin; negative where the pause began before it
    end: Ints


def merged_pauses(pauses: Iterable[Pause], process: str) -> tuple[Ints, Ints]:
    """Begins and ends of a process's pauses, in order, those that overlap made one."""
    begins: list[int] = []
    ends: list[int] = []
    for pause in sorted((p for p in pauses if p.process == process), key=lambda p: p.begin_ns):
        if ends and pause.begin_ns <= ends[-1]:
            ends[-1] = max(ends[-1], pause.end_ns)
        elif pause.end_ns > pause.begin_ns:
            begins.append(pause.begin_ns)
            ends.append(pause.end_ns)
    return np.array(begins, np.int64), np.array(ends, np.int64)


def stops(steps: StepColumns, streams: Mapping[tuple[str, int], Rows], pauses: Iterable[Pause]) -> Stops:
    """Each pause in each step that it stopped."""
    pauses = tuple(pauses)
    by_process = {process: merged_pauses(pauses, process) for process in {p.process for p in pauses}}
    found: list[tuple[Ints, ...]] = []
    for (process, _), rows in streams.items():
        if process not in by_process:
            continue
        begins, ends = by_process[process]
        step_begin, step_end = steps.begin_ns(rows.begin, rows.end), steps.end_ns[rows.begin : rows.end]
        hit = slice(
            int(ends.searchsorted(step_begin[0], side="right")), int(begins.searchsorted(step_end[-1]))
        )
        if hit.start >= hit.stop:
            continue
        begin, end = begins[hit], ends[hit]
        first = step_end.searchsorted(begin, side="right")
        count = np.maximum(step_begin.searchsorted(end) - first, 0)
        pause = np.repeat(np.arange(len(count)), count)
        row = first[pause] + np.arange(len(pause)) - (np.cumsum(count) - count)[pause]
        at = step_begin[row]
        found.append((rows.begin + row, begin[pause] - at, end[pause] - at))
    if not found:
        nothing = np.zeros(0, np.int64)
        return Stops(nothing, nothing, nothing)
    row, begin, end = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(row, kind="stable")
    return Stops(row[order], begin[order], end[order])


def carve(parts: Ints, found: Stops) -> None:
    """Move what each stop took of its row to the last column, which is the garbage collector's.

    Args:
        parts: (rows, parts), the parts in the order in which they ran.
        found: `row` counts those rows.
    """
    for turn in _turns(found.row):  # stops of one step one after the other
        _carve(parts, found.row[turn], found.begin[turn], found.end[turn])


def _turns(rows: Ints) -> list[Ints]:
    """Places in `rows`, which are in order: of the first time each is named, of the second, ..."""
    place = np.arange(len(rows))
    begins = np.diff(rows, prepend=-1) > 0
    times = place - np.maximum.accumulate(np.where(begins, place, 0))
    return [np.flatnonzero(times == turn) for turn in range(int(times.max(initial=-1)) + 1)]


def _carve(parts: Ints, row: Ints, begin: Ints, end: Ints) -> None:
    held = parts[row]
    bounds = np.cumsum(held[:, :-1], axis=1)
    before = held[:, -1]  # earlier stops of the step have shortened the parts in front
    begin, end = (begin - before)[:, None], (end - before)[:, None]
    taken = np.clip(np.minimum(end, bounds) - np.maximum(begin, bounds - held[:, :-1]), 0, None)
    parts[row, :-1] -= taken
    parts[row, -1] += taken.sum(axis=1)
