"""The busiest second of an engine: which requests sat in which steps, and who read a prompt in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from phasetrace.analyze.attribution import stretches
from phasetrace.analyze.busiest import Window, busiest
from phasetrace.analyze.composition import Composition, composition
from phasetrace.analyze.step_table import StepTable, step_table
from phasetrace.model import Phase, Recording, Request, RequestStatus
from phasetrace.render import units
from phasetrace.render.axis import axis
from phasetrace.render.ink import Ink

LABEL = 14  # columns left of the timeline
MOST_REQUESTS = 24
ID = LABEL - 3  # of a request's id, from its end: ids of one process begin alike
WAITING = (Phase.QUEUE, Phase.PREEMPTED)
ABSENT = None


def busiest_second(
    recording: Recording, width: int = 80, color: bool = False, ascii: bool = False
) -> str | None:
    """The timeline; None where no requests shared steps."""
    table = step_table(recording)
    made = composition(recording.requests, table)
    window = None if made is None else busiest(made, table)
    if made is None or window is None:
        return None
    ink = Ink(width, color, ascii)
    room = max(10, ink.width - LABEL - 1)
    seated = _Seats(made, table, window, room)
    rows = sorted(seated.rows.items(), key=lambda item: (made.requests[item[0]].arrival_ns, item[0]))
    lines = [ink.bold(line) for line in ink.wrap(_title(table, window, recording))]
    lines += [axis(window.end_ns - window.begin_ns, room, LABEL, ink), _steps(table, window, room, ink)]
    lines += [_row(made.requests[place], row, ink) for place, row in rows[:MOST_REQUESTS]]
    if len(rows) > MOST_REQUESTS:
        lines.append(f"  and {units.counted(len(rows) - MOST_REQUESTS, 'more request')}")
    return "\n".join([*lines, _legend(seated, ink)]) + "\n"


class _Seats:
    """What each request did in each cell of the timeline. Reading a prompt hides what else a cell holds."""

    def __init__(self, made: Composition, table: StepTable, window: Window, room: int) -> None:
        self._begin, self._length, self._room = window.begin_ns, window.end_ns - window.begin_ns, room
        self.rows: dict[int, list[Phase | None]] = {}
        for place, request in enumerate(made.requests):
            for phase, begin, end in _waits(request, window):
                self._mark(place, phase, begin, end)
        shown = window.rows
        decoding = made.decoding
        for at in np.flatnonzero((decoding.begin < shown.end) & (decoding.end > shown.begin)).tolist():
            first, last = max(decoding.begin[at], shown.begin), min(decoding.end[at], shown.end)
            for row in range(first, last):
                self._mark(decoding.request[at], Phase.DECODE, table.steps.began_ns(row), table.end_ns[row])
        reading = made.reading
        first, last = reading.row.searchsorted([shown.begin, shown.end])
        for at in range(first, last):
            row = reading.row[at]
            self._mark(reading.request[at], Phase.PREFILL, table.steps.began_ns(row), table.end_ns[row])

    def _mark(self, place: int, phase: Phase, begin: int, end: int) -> None:
        first = int((begin - self._begin) * self._room // self._length)
        last = int(-(-(end - self._begin) * self._room // self._length))
        row = self.rows.setdefault(int(place), [ABSENT] * self._room)
        for cell in range(max(0, first), min(self._room, max(last, first + 1))):
            row[cell] = phase


def _waits(request: Request, window: Window) -> Iterator[tuple[Phase, int, int]]:
    if request.status is not RequestStatus.OK or request.finished_ns is None:
        return
    for stretch in stretches(request):
        if stretch.phase in WAITING and stretch.begin_ns < window.end_ns and stretch.end_ns > window.begin_ns:
            yield stretch.phase, stretch.begin_ns, stretch.end_ns


def _title(table: StepTable, window: Window, recording: Recording) -> str:
    shown = slice(window.rows.begin, window.rows.end)
    begin = min(r.arrival_ns for r in recording.requests)
    most = int(table.running[shown].max())
    computed = int(table.computed_tokens[shown].clip(0).sum())
    return (
        f"the busiest {units.duration(window.end_ns - window.begin_ns)},"
        f" {units.duration(window.begin_ns - begin)} after the first request:"
        f" {units.counted(len(window.rows), 'step')} computed {units.counted(computed, 'token')},"
        f" at most {units.counted(most, 'sequence')} in one"
    )


def _steps(table: StepTable, window: Window, room: int, ink: Ink) -> str:
    """Tokens computed a step: in each cell those of the largest step that reaches into it."""
    heights = [0.0] * room
    length = window.end_ns - window.begin_ns
    for row in range(window.rows.begin, window.rows.end):
        first = int((table.steps.began_ns(row) - window.begin_ns) * room // length)
        last = int(-(-(table.end_ns[row] - window.begin_ns) * room // length))
        for cell in range(max(0, first), min(room, max(last, first + 1))):
            heights[cell] = max(heights[cell], float(np.sqrt(max(0, table.computed_tokens[row]))))
    return f"  {'tokens':<{LABEL - 2}}" + ink.sparkline(heights)


def _row(request: Request, row: list[Phase | None], ink: Ink) -> str:
    cells = []
    at = 0
    while at < len(row):  # cells of one colour together: a terminal is told each colour once
        end = at
        while end < len(row) and row[end] is row[at]:
            end += 1
        phase = row[at]
        cells.append(" " * (end - at) if phase is None else ink.fill(phase, end - at))
        at = end
    return f"  {ink.say(request.id[-ID:]):<{LABEL - 2}}" + "".join(cells).rstrip()


def _legend(seated: _Seats, ink: Ink) -> str:
    said = {
        Phase.PREFILL: "reads a prompt",
        Phase.DECODE: "decodes",
        Phase.QUEUE: "waits",
        Phase.PREEMPTED: "evicted",
    }
    held = {phase for row in seated.rows.values() for phase in row}
    marks = [f"{ink.fill(phase, 1)} {word}" for phase, word in said.items() if phase in held]
    return " " * LABEL + "  ".join(marks)
