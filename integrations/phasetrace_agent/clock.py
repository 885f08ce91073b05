"""The clocks: the monotonic one orders everything on a host, the wall clock dates it."""

from time import monotonic_ns as now
from time import time_ns as wall

__all__ = ["now", "pair", "wall"]


def pair() -> "tuple[int, int]":
    """A monotonic time and the wall clock at that moment; a preempted reading is taken again."""
    for _ in range(3):
        before = now()
        at = wall()
        after = now()
        if after - before < 20_000:
            break
    return (before + after) // 2, at
