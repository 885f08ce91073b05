"""How an engine's start spent its time: a bar a stage, those inside of another one indented under it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from phasetrace.model import Recording, Stage
from phasetrace.render import units
from phasetrace.render.ink import Ink

LABEL = 22  # columns left of the bars: "    graph-capture"
FIGURE = 10
MOST_STAGES = 24


def start(recording: Recording, width: int = 80, color: bool = False, ascii: bool = False) -> str | None:
    """The stages on one time axis; None where no start was recorded."""
    stages = sorted(recording.stages, key=lambda s: (s.begin_ns, -s.end_ns, s.name))
    if not stages:
        return None
    ink = Ink(width, color, ascii)
    begin, end = stages[0].begin_ns, max(stage.end_ns for stage in stages)
    room = max(10, ink.width - LABEL - FIGURE - 1)
    lines = ink.wrap(f"start of the engine: {units.duration(end - begin)}")
    for stage, depth in _nested(stages[:MOST_STAGES]):
        name = ink.say("  " * (depth + 1) + stage.name)
        left = min(room - 1, room * (stage.begin_ns - begin) // max(1, end - begin))
        cells = max(1, min(room - left, round(room * (stage.end_ns - stage.begin_ns) / max(1, end - begin))))
        bar = " " * left + ("#" if ascii else "▒") * cells
        figure = ink.say(units.duration(stage.end_ns - stage.begin_ns))
        lines.append(f"{name:<{LABEL}}{bar:<{room}} {figure:>{FIGURE - 1}}")
    if len(stages) > MOST_STAGES:
        lines.append(f"  and {units.counted(len(stages) - MOST_STAGES, 'more stage')}")
    return "\n".join([ink.bold(lines[0]), *lines[1:]]) + "\n"


def _nested(stages: Sequence[Stage]) -> Iterator[tuple[Stage, int]]:
    """Each stage, and how many of those before it it lies in; in whatever process, since a core waits."""
    around: list[Stage] = []
    for stage in stages:
        around = [outer for outer in around if outer.end_ns >= stage.end_ns]
        yield stage, len(around)
        around.append(stage)
