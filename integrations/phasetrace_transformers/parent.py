"""The application's own OpenTelemetry span around a call, and whose the time in it is."""

from __future__ import annotations

from typing import Any

from phasetrace_agent.active_span import active_span as active_span


class LastEnds:
    """When the latest request ended in each application span: from then on its time is its own."""

    _KEPT = 256

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}

    def note(self, parent: dict[str, Any], end: int) -> None:
        """A request under `parent` ended."""
        self._ends.pop(parent["span"], None)
        self._ends[parent["span"]] = end
        if len(self._ends) > self._KEPT:
            self._ends.pop(list(self._ends)[0], None)  # a copy: other threads may add

    def frontend_begin(self, parent: dict[str, Any], now: int, wall: int) -> int | None:
        """Since when the application worked towards this request: its span's start, or the last request."""
        started = None if parent["begin_wall"] is None else now - max(0, wall - parent["begin_wall"])
        known = [t for t in (started, self._ends.get(parent["span"])) if t is not None]
        return max(known) if known else None
