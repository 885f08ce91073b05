"""Recording <-> spans, both directions side by side: `emit` and `read` both stand on this. Pure.

`SpanMaker` turns partial recordings into spans as they come, `from_spans` makes one recording of all of them:
whatever was recorded comes back equal, except that pieces of a stream of steps are joined.
"""

from phasetrace.mapping.budget import Detail, SpanBudget
from phasetrace.mapping.recording_spans import SpanMaker, from_spans, service_name, to_spans
from phasetrace.mapping.span import (
    Attributes,
    Event,
    Kind,
    ResourceSpans,
    Span,
    TokenSpans,
    Value,
    derived_id,
)

__all__ = [
    "Attributes",
    "Detail",
    "Event",
    "Kind",
    "ResourceSpans",
    "Span",
    "SpanBudget",
    "SpanMaker",
    "TokenSpans",
    "Value",
    "derived_id",
    "from_spans",
    "service_name",
    "to_spans",
]
