"""The application's own OpenTelemetry span around a call, read through `sys.modules` and never imported."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
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
