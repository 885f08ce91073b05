"""Zipkin's JSON, version 2: an array of spans, or of traces that are such arrays.

Times are microseconds and may lack; all tags are strings; a client and a server may share one span id.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phasetrace.mapping import Attributes, Event, Kind, ResourceSpans, Span
from phasetrace.read import ids
from phasetrace.read.dialects import wanted
from phasetrace.read.jaeger import text_or_list
from phasetrace.read.json_text import ANYTHING, values
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import as_dict, dicts
from phasetrace.read.source import Source
from phasetrace.semconv import Attribute as A

_SCOPES = ("otel.scope.name", "otel.library.name")
_KINDS = {"CLIENT": Kind.CLIENT, "SERVER": Kind.SERVER}


def zipkin(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of all traces, also where each line is an array or a span of its own."""
    for raw in values(source, notes, ANYTHING):
        if isinstance(raw, dict):
            yield from _group(raw, notes)


def _group(raw: dict[str, Any], notes: Notes) -> Iterator[ResourceSpans]:
    name = str(raw.get("name", ""))
    notes.spans(name)
    tags = as_dict(raw.get("tags"))
    service = as_dict(raw.get("localEndpoint")).get("serviceName")
    resource: Attributes = {}
    if service is not None:
        notes.service(service)
        resource[A.SERVICE_NAME] = str(service)
    if not wanted(name, tags):
        return
    if raw.get("timestamp") is None:
        notes.say(f"spans of {notes.name} have no time: left out")
        return
    try:
        span = _span(raw, name, {str(key): text_or_list(str(key), str(value)) for key, value in tags.items()})
    except (KeyError, TypeError, ValueError, OverflowError):
        notes.damaged += 1
        return
    scope = str(next((tags[key] for key in _SCOPES if key in tags), ""))
    yield ResourceSpans(resource, [span], scope=scope)


def _span(raw: dict[str, Any], name: str, attributes: Attributes) -> Span:
    start = ids.microseconds(raw["timestamp"])
    error = attributes.get("error")
    return Span(
        trace_id=ids.trace_id(raw["traceId"]),
        span_id=ids.span_id(raw["id"]),
        parent_span_id=ids.parent_id(raw.get("parentId")),
        name=name,
        start_ns=start,
        end_ns=start + ids.microseconds(raw.get("duration") or 0),
        kind=_KINDS.get(str(raw.get("kind")), Kind.INTERNAL),
        attributes=attributes,
        error=str(error) or "error" if error not in (None, "false") else None,
        events=tuple(
            Event(str(note.get("value", "")), ids.microseconds(note.get("timestamp") or 0))
            for note in dicts(raw.get("annotations"))
        ),
    )
