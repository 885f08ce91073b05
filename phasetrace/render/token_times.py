"""A request's tokens as text: the stalls among them, with what or who held them up, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from phasetrace.model import Part, Recording, Request, StallCause
from phasetrace.render import context, units
from phasetrace.render.ink import Cell, Ink, columns, table_room
from phasetrace.render.timeline import LateToken, Timeline, timeline

MOST_STALLS = 9  # each has a digit as its mark
MOST_PARTS = 3  # that a stall holds
MOST_READERS = 2  # requests whose prompts made a stall


def longest(steps: Timeline) -> list[LateToken]:
    """The longest stalls, in order of time."""
    worst = sorted(steps.stalls(), key=lambda stall: -stall.gap_ns)[:MOST_STALLS]
    return sorted(worst, key=lambda stall: stall.at_ns)


def marks(stalls: Sequence[LateToken], begin_ns: int, total_ns: int, room: int) -> str:
    """Each stall's number, above the column in which it began."""
    line = [" "] * room
    for number, stall in enumerate(stalls, start=1):
        line[min(room - 1, max(0, (stall.at_ns - begin_ns) * room // max(1, total_ns)))] = str(number)
    return "".join(line).rstrip()


def stalls(r: Request, steps: Timeline, recording: Recording, ink: Ink) -> list[str]:
    """A line each: when, how long, and why."""
    found = longest(steps)
    if not found:
        return []
    name = context.short_ids(recording.requests)
    rows: list[tuple[str, ...]] = [("", "at", "token", "gap", "x usual")]
    for number, stall in enumerate(found, start=1):
        times = (units.duration(stall.at_ns - r.begin_ns), units.duration(stall.gap_ns))
        many = f"{stall.gap_ns / max(1, stall.usual_ns):.1f}"
        rows.append((str(number), ink.say(times[0]), units.count(stall.token), ink.say(times[1]), many))
    room = replace(ink, width=table_room(rows, ink.width))
    shown: list[tuple[Cell, ...]] = [tuple((title, ink.dim) for title in (*rows[0], "because"))]
    for row, stall in zip(rows[1:], found, strict=True):
        first, *more = room.wrap(_because(stall, name))
        shown += [(*row, first), *(("",) * len(row) + (line,) for line in more)]
    hidden = len(steps.stalls()) - len(found)
    rest = [f"  and {units.counted(hidden, 'shorter one')}"] if hidden else []
    return [ink.dim("stalls"), *columns(shown, right=(0, 1, 2, 3, 4)), *rest]


def every(r: Request, recording: Recording, width: int = 80, color: bool = False, ascii: bool = False) -> str:
    """A line a step that gave tokens: when, how long after the last, with whom, and why where it was late."""
    ink = Ink(width, color, ascii)
    steps = timeline(r, recording)
    if steps is None or r.first_token_ns is None:
        return "the times of its tokens were not recorded\n"
    name = context.short_ids(recording.requests)
    late = {stall.token: stall for stall in steps.stalls()}
    usual = float(np.median(steps.gaps)) if len(steps.gaps) else 0.0
    rows: list[tuple[str, ...]] = [("token", "at", "gap", "x median", "sequences", "prompt tokens", "")]
    for number, end in enumerate(steps.token_ns.tolist(), start=1):
        row = steps.first + number - 1
        gap = end - int(steps.token_ns[number - 2]) if number > 1 else None
        many = f"{gap / usual:.1f}" if gap is not None and usual else ""
        running = int(steps.table.running[row])
        read = int(steps.made.prompt[row]) if steps.made is not None else None
        why = _because(late[number], name) if number in late else ""
        counts = (units.count(running) if running >= 0 else "", units.count(read) if read else "")
        times = (units.duration(end - r.begin_ns), units.duration(gap) if gap is not None else "")
        rows.append((units.count(number), *times, many, *counts, why))
    head, *lines = columns([tuple(map(ink.say, row)) for row in rows], right=(0, 1, 2, 3, 4, 5), indent="")
    return "\n".join([ink.dim(head), *lines]) + "\n"


def _because(stall: LateToken, name: Callable[[str], str]) -> str:
    """Whose prompts were read, where it was that; else the cause, and the parts of the step that overran."""
    if stall.cause is StallCause.OTHERS_PREFILL and stall.read:
        readers = [*map(name, stall.read)][:MOST_READERS]
        hidden = len(stall.read) - len(readers)
        said = f"reading {units.counted(sum(stall.read.values()), 'token')} of {', '.join(readers)}"
        return f"{said} and {hidden} more" if hidden else said
    parts = [f"{part} {units.duration(ns)}" for part, ns in list(stall.parts.items())[:MOST_PARTS]]
    known = stall.cause is not StallCause.UNKNOWN and str(stall.cause) not in stall.parts
    return ", ".join(([str(stall.cause)] if known else []) + (parts or [str(Part.OTHER)]))
