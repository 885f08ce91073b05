"""OTLP JSON: a request body or a `TracesData` a line or a file, and what wraps or shortens these.

Tempo and Grafana say `batches`, and write ids in base64 and enums by name. Jaeger's API v3 and Tempo's v2
put the whole under `result` or `trace`. Java's logging exporter writes the bare resources, and writers from
before 2022 said `instrumentationLibrarySpans`.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from sys import intern
from typing import Any

from msgspec import Raw, Struct, ValidationError, convert
from msgspec.json import Decoder

from phasetrace.mapping import Attributes, Event, Kind, ResourceSpans, Span, Value
from phasetrace.read import ids
from phasetrace.read.dialects import NAMES, wanted
from phasetrace.read.json_text import decoded, values
from phasetrace.read.notes import Notes
from phasetrace.read.source import Source
from phasetrace.semconv import DERIVED_SPANS, Scope
from phasetrace.semconv import Attribute as A

# Lines that hold only spans of phases or tokens: what they say is in the steps, and they are most of a file.
PASSED_OVER = tuple(f'"scope":{{"name":"{scope}"'.encode() for scope in (Scope.PHASES, Scope.TOKENS))
OURS = frozenset(Scope)
SCOPES = ("scopeSpans", "instrumentationLibrarySpans", "scope_spans")
RESOURCES = ("resourceSpans", "batches", "resource_spans")
_LONG = 19  # digits of a number that may have to be looked at twice
_ERROR = (2, "2", "STATUS_CODE_ERROR", "ERROR")
_KINDS: dict[Any, Kind] = {
    **{kind.value: kind for kind in Kind},
    **{f"SPAN_KIND_{kind.name}": kind for kind in Kind},
    **{kind.name: kind for kind in Kind},
    **{str(kind.value): kind for kind in Kind},
}


class _Array(Struct, gc=False):
    values: list[AnyValue] | None = None


class AnyValue(Struct, gc=False):
    """OTLP's value: one of these is there."""

    stringValue: Any = None
    intValue: Any = None
    doubleValue: Any = None
    boolValue: Any = None
    bytesValue: Any = None
    arrayValue: _Array | None = None


class KeyValue(Struct, gc=False):
    """OTLP's attribute."""

    key: str
    value: AnyValue | None = None


class _Status(Struct, gc=False):
    code: Any = None
    message: Any = None


class _Event(Struct, gc=False):
    name: str | None = None
    timeUnixNano: Any = None


class _Span(Struct, gc=False):
    traceId: Any
    spanId: Any
    startTimeUnixNano: Any
    name: str | None = None
    endTimeUnixNano: Any = None
    parentSpanId: Any = None
    kind: Any = None
    attributes: list[KeyValue] | None = None
    status: _Status | None = None
    events: list[_Event] | None = None


class _Attributes(Struct):
    attributes: list[KeyValue] | None = None


class _Named(Struct):
    name: str | None = None


class _Scope(Struct):
    spans: list[Raw] | None = None
    scope: _Named | None = None
    instrumentationLibrary: _Named | None = None


class _Resource(Struct):
    resource: _Attributes | None = None
    scopeSpans: list[_Scope] | None = None
    instrumentationLibrarySpans: list[_Scope] | None = None
    scope_spans: list[_Scope] | None = None


class _Document(_Resource):
    resourceSpans: list[_Resource] | None = None
    batches: list[_Resource] | None = None
    resource_spans: list[_Resource] | None = None
    result: _Document | None = None
    trace: _Document | None = None
    status: Any = None
    message: Any = None


_DOCUMENT = Decoder(_Document)
_SPAN = Decoder(_Span)


def otlp_json(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of all documents that are of use."""
    for value in values(source, notes, _DOCUMENT, PASSED_OVER):
        if value is None:  # a line of ours with nothing that its other lines do not say
            yield ResourceSpans({}, [], scope=Scope.TOKENS)
        else:
            for resource in _resources(value, notes):
                yield from _groups(resource, notes)


def _resources(value: _Document, notes: Notes) -> Iterator[_Resource]:
    """The `ResourceSpans` of a document, whatever they are wrapped in."""
    if value.status == "PARTIAL":
        notes.say(f"{notes.name} says that it is a part of a trace only: {value.message or 'PARTIAL'}")
    for known in (value.resourceSpans, value.batches, value.resource_spans):
        yield from known or ()
    for wrapped in (value.result, value.trace):
        if wrapped is not None:
            yield from _resources(wrapped, notes)
    if any((value.scopeSpans, value.instrumentationLibrarySpans, value.scope_spans)):  # a bare one
        yield value


def _groups(resource: _Resource, notes: Notes) -> Iterator[ResourceSpans]:
    known = attributes(resource.resource.attributes) if resource.resource is not None else {}
    if (service := known.get(A.SERVICE_NAME)) is not None:
        notes.service(service)
    for scopes in (resource.scopeSpans, resource.instrumentationLibrarySpans, resource.scope_spans):
        for scope in scopes or ():
            named = scope.scope or scope.instrumentationLibrary
            group = ResourceSpans(known, [], scope=(named.name if named is not None else None) or "")
            ours = group.scope in OURS
            for text in scope.spans or ():
                try:
                    raw = decoded(_SPAN, text)
                    title = raw.name or ""
                    notes.spans(title)
                    if ours:
                        if title not in DERIVED_SPANS:
                            group.spans.append(_span(raw, title))
                    elif title in NAMES or wanted(title, [pair.key for pair in raw.attributes or ()]):
                        group.spans.append(_span(raw, title))
                except (KeyError, TypeError, ValueError, OverflowError):
                    notes.damaged += 1
            yield group


def _span(raw: _Span, name: str) -> Span:
    start = ids.nanoseconds(raw.startTimeUnixNano)
    failed = raw.status is not None and raw.status.code in _ERROR
    return Span(
        trace_id=ids.trace_id(raw.traceId),
        span_id=ids.span_id(raw.spanId),
        parent_span_id=ids.parent_id(raw.parentSpanId),
        name=name,
        start_ns=start,
        end_ns=ids.nanoseconds(raw.endTimeUnixNano or start),
        kind=kind(raw.kind),
        attributes=attributes(raw.attributes),
        error=str(raw.status.message or "error") if failed and raw.status is not None else None,
        events=tuple(Event(e.name or "", ids.nanoseconds(e.timeUnixNano or start)) for e in raw.events)
        if raw.events
        else (),
    )


def kind(value: Any) -> Kind:
    """A kind by its number or by its name."""
    return _KINDS.get(value, Kind.UNSPECIFIED) if isinstance(value, (int, str)) else Kind.UNSPECIFIED


def attributes(pairs: Iterable[KeyValue] | None) -> Attributes:
    """Keys and values; what is empty or cannot be understood is left out."""
    found: Attributes = {}
    for pair in pairs or ():
        if (given := pair.value) is None:
            continue
        value: Value | None  # most are of these three, and need no call
        if type(number := given.doubleValue) is float:
            value = number
        elif type(text := given.stringValue) is str:
            value = text
        elif type(digits := given.intValue) is str and len(digits) < _LONG and digits.isdecimal():
            value = int(digits)
        elif (value := _value(given)) is None:
            continue
        # Keys are few and met millions of times: interned, each is kept once.
        found[intern(pair.key)] = value
    return found


def _value(value: AnyValue) -> Value | None:
    try:
        if (raw := value.stringValue) is not None:
            return str(raw)
        if (raw := value.intValue) is not None:
            return int(raw)
        if (raw := value.doubleValue) is not None:
            return float(raw)
        if (raw := value.boolValue) is not None:
            return bool(raw)
        if (raw := value.bytesValue) is not None:
            return _bytes(raw)
    except (TypeError, ValueError, OverflowError):
        return None
    if value.arrayValue is None:
        return None
    items = [_value(item) for item in value.arrayValue.values or () if item.arrayValue is None]
    return [item for item in items if item is not None]  # type: ignore[return-value]


def _bytes(text: Any) -> bytes:
    try:
        return convert(text, bytes)  # five times as fast as the other, which reads what is less strict
    except ValidationError:
        return a2b_base64(text)


def as_dict(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
