"""Spans as plain JSON objects: what Python's console exporter prints, or `{"spans": [...]}`.

Times are ISO 8601 or numbers since the epoch in any unit; names are those of the console exporter, or what
people make of OTLP's by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Raw, Struct, ValidationError, convert
from msgspec.json import Decoder

from phasetrace.mapping import Attributes, Event, ResourceSpans, Span
from phasetrace.read import ids
from phasetrace.read.dialects import wanted
from phasetrace.read.jaeger import plain
from phasetrace.read.json_text import documents, parse
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import KeyValue, as_dict, attributes, dicts, kind
from phasetrace.read.source import Source
from phasetrace.semconv import Attribute as A

_TRACE = ("trace_id", "traceId", "traceID")
_SPAN = ("span_id", "spanId", "spanID", "id")
_PARENT = ("parent_id", "parentId", "parent_span_id", "parentSpanId")
_BEGIN = ("start_time", "startTime", "startTimeUnixNano", "start_time_unix_nano", "start", "timestamp")
_END = ("end_time", "endTime", "endTimeUnixNano", "end_time_unix_nano", "end")
_LONGEST_LINES = 100_000  # of one object
_FAILED = ("ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR", 2)


class _Spans(Struct):
    spans: list[Raw] | None = None
    resource: Any = None


_SPANS = Decoder(_Spans | list[Raw])


def console(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans among whatever else a program prints."""
    for raw in _objects(source, notes):
        yield from group(raw, _resource(raw), notes)
    if not notes.documents:
        notes.refuse(ValueError("no line of it begins a span"))


def bare_spans(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of `{"spans": [...]}`, or of an array."""
    for whole in documents(source, notes, _SPANS):
        spans = whole if isinstance(whole, list) else whole.spans
        shared = None if isinstance(whole, list) else as_dict(whole.resource).get("attributes")
        for text in spans or ():
            try:
                raw = as_dict(parse(text))
            except ValueError:
                notes.damaged += 1
                continue
            yield from group(raw, shared or _resource(raw), notes)


def _objects(source: Source, notes: Notes) -> Iterator[dict[str, Any]]:
    """Pretty-printed objects, each from a line `{` to a line `}`, and those on lines of their own."""
    inside: list[bytes | bytearray] = []
    text: bytes | bytearray
    for line in source.lines():
        bare = line.rstrip()
        if inside or bare == b"{":
            if bare == b"{":  # what came before was cut off by another writer
                notes.damaged += bool(inside)
                inside = []
            inside.append(line)
            if bare != b"}" and len(inside) < _LONGEST_LINES:
                continue
            text, inside = b"".join(inside), []
        elif (begin := line.find(b"{")) >= 0 and bare.endswith(b"}"):
            text = line[begin:]
        else:
            notes.cut = begin >= 0 and not line.endswith(b"\n")
            continue
        try:
            found = parse(text)
        except ValueError:
            notes.damaged += 1
            continue
        if isinstance(found, dict) and ("context" in found or _first(found, _TRACE) is not None):
            notes.documents += 1
            yield found
    notes.cut = notes.cut or source.cut or bool(inside)


def _resource(raw: dict[str, Any]) -> Any:
    return as_dict(raw.get("resource")).get("attributes")


def group(raw: dict[str, Any], resource: Any, notes: Notes) -> Iterator[ResourceSpans]:
    """The span of one object, with the attributes of its resource; none where it is of no use."""
    name = str(raw.get("name", ""))
    notes.spans(name)
    known = _attributes(resource)
    if (service := known.get(A.SERVICE_NAME)) is not None:
        notes.service(service)
    found = _attributes(raw.get("attributes"))
    if not wanted(name, found):
        return
    scope = as_dict(raw.get("scope") or raw.get("instrumentation_scope")).get("name", "")
    try:
        yield ResourceSpans(known, [_span(raw, name, found)], scope=str(scope))
    except (KeyError, TypeError, ValueError, OverflowError):
        notes.damaged += 1


def _span(raw: dict[str, Any], name: str, found: Attributes) -> Span:
    context = as_dict(raw.get("context")) or raw
    start = ids.moment(_first(raw, _BEGIN))
    end = _first(raw, _END)
    status = raw.get("status")
    code = status.get("status_code", status.get("code")) if isinstance(status, dict) else status
    failed = code in _FAILED or raw.get("status_code") in _FAILED
    description = as_dict(status).get("description") or as_dict(status).get("message")
    description = description or raw.get("status_message")
    return Span(
        trace_id=ids.trace_id(_first(context, _TRACE)),
        span_id=ids.span_id(_first(context, _SPAN)),
        parent_span_id=ids.parent_id(_first(raw, _PARENT)),
        name=name,
        start_ns=start,
        end_ns=start if end is None else ids.moment(end),
        kind=kind(_without_prefix(raw.get("kind"))),
        attributes=found,
        error=str(description or "error") if failed else None,
        events=tuple(_events(raw)),
    )


def _events(raw: dict[str, Any]) -> Iterator[Event]:
    for event in dicts(raw.get("events")):
        time = _first(event, ("timestamp", "timeUnixNano", "time"))
        if time is not None:
            yield Event(str(event.get("name", "")), ids.moment(time))


def _attributes(value: Any) -> Attributes:
    """A flat object of values, or OTLP's pairs."""
    if isinstance(value, list):
        try:
            return attributes(convert(value, list[KeyValue]))
        except ValidationError:
            return {}
    flat = {str(key): plain(item) for key, item in as_dict(value).items()}
    return {key: item for key, item in flat.items() if item is not None}


def _without_prefix(value: Any) -> Any:
    return re.sub(r"^(SpanKind\.)", "", value).upper() if isinstance(value, str) else value


def _first(raw: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((raw[name] for name in names if raw.get(name) is not None), None)
