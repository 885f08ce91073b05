"""Pauses of the whole process: Python's garbage collector, which stops every thread while it runs."""

from __future__ import annotations

import gc
import time

from phasetrace_agent.layout import GC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from phasetrace_agent.recorder import Recorder

# Young collections take some 10 us and come by the thousand; no step notices what is shorter than this.
THRESHOLD_NS = 100_000

_recorder: Recorder | None = None


def instrument(recorder: Recorder) -> None:
    """Record every collection that takes as long as the threshold."""
    global _recorder
    watching, _recorder = _recorder is not None, recorder
    if watching:
        return
    now = time.monotonic_ns
    begin = 0

    def watch(phase: str, info: dict[str, int]) -> None:
        nonlocal begin
        if phase == "start":
            begin = now()
            return
        end = now()
        to = _recorder
        if end - begin >= THRESHOLD_NS and begin and to is not None and to.enabled:
            to.pause(GC, info["generation"], begin, end, info["collected"])

    gc.callbacks.append(watch)
