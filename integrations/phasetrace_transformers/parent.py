"""The application's own OpenTelemetry span around a call, read through `sys.modules` and never imported."""

from __future__ import annotations

import sys
from typing import Any


def active_span() -> dict[str, Any] | None:
    """Trace id, span id and start (wall clock) of the span that is active in this thread, if there is one."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    span = trace.get_current_span()
    context = span.get_span_context()
    if not context.is_valid:
        return None
    begin = getattr(span, "start_time", None)  # only the SDK's spans tell
    return {
        "trace": f"{context.trace_id:032x}",
        "span": f"{context.span_id:016x}",
        "begin_wall": begin if type(begin) is int else None,
    }


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
