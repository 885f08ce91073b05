"""What Arize Phoenix and MLflow give out of their stores: OTLP by other names, or spans with flat attributes.

Neither tells a client's span from a server's, and MLflow has no resource but the tags of a trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phasetrace.mapping import ResourceSpans
from phasetrace.read.json_text import ANYTHING, parse, values
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import as_dict, dicts
from phasetrace.read.plain_spans import group
from phasetrace.read.source import Source

_DEEPEST = 16  # arrays and maps in one another


def stored(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of pages of Phoenix's, and of MLflow's traces, a document or a line each."""
    for value in values(source, notes, ANYTHING):
        whole = as_dict(value)
        trace = as_dict(whole.get("trace", whole))
        tags = as_dict(as_dict(trace.get("trace_info", trace.get("info"))).get("tags"))
        held = trace.get("data", trace)  # MLflow's client has its spans there, Phoenix a list of them
        for raw in dicts(held if isinstance(held, list) else as_dict(held).get("spans")):
            yield from group({**raw, "attributes": _flat(raw.get("attributes"))}, tags, notes)


def _flat(attributes: Any) -> dict[str, Any]:
    if isinstance(attributes, list):  # OTLP's pairs
        return {str(pair.get("key")): _value(pair.get("value")) for pair in dicts(attributes)}
    found = as_dict(attributes)
    if "mlflow.traceRequestId" in found:  # MLflow's client: each value is JSON
        return {key: _parsed(value) for key, value in found.items()}
    return found


def _value(value: Any, depth: int = 0) -> Any:
    """OTLP's value by its names in protobuf."""
    for form, raw in as_dict(value).items():
        if raw is None or depth > _DEEPEST:
            continue
        if form == "array_value":
            return [_value(item, depth + 1) for item in dicts(as_dict(raw).get("values"))]
        return None if form in ("kvlist_value", "bytes_value") else raw
    return None


def _parsed(value: Any) -> Any:
    try:
        return parse(value.encode()) if isinstance(value, str) else value
    except ValueError:
        return value
