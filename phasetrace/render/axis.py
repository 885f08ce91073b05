"""A time axis over a line of columns."""

from __future__ import annotations

from phasetrace.render import units
from phasetrace.render.ink import Ink


def axis(total_ns: int, room: int, label: int, ink: Ink) -> str:
    """Marks at 0, a half and the end, `label` columns from the left; a narrow one has no half."""
    end, half = ink.say(units.duration(total_ns)), ink.say(units.duration(total_ns // 2))
    line = "0".ljust(room // 2) + half if room > 3 * len(half) + 2 else "0"
    return ink.dim(" " * label + line.ljust(room - len(end)) + end)
