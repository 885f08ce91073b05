"""The one list of names that others see: spans, attributes, metrics, causes; with units and meanings.

Names follow the OpenTelemetry GenAI conventions where those have one; what they lack is under `phasetrace.*`.
"""

from phasetrace.semconv.attributes import Attribute
from phasetrace.semconv.causes import Cause, CausePhase
from phasetrace.semconv.described import Described
from phasetrace.semconv.metrics import Metric, MetricKind
from phasetrace.semconv.spans import DERIVED_SPANS, Scope, SpanName

__all__ = [
    "DERIVED_SPANS",
    "Attribute",
    "Cause",
    "CausePhase",
    "Described",
    "Metric",
    "MetricKind",
    "Scope",
    "SpanName",
]
