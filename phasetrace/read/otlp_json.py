"""OTLP JSON: a request body or a `TracesData` a line or a file, and what wraps or shortens these.

Tempo and Grafana say `batches`, and write ids in base64 and enums by name. Jaeger's API v3 and Tempo's v2
put the whole under `result` or `trace`. Java's logging exporter writes the bare resources, and writers from
before 2022 said `instrumentationLibrarySpans`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator
from sys import intern
from typing import Any

from phasetrace.mapping import Attributes, Event, Kind, ResourceSpans, Span, Value
from phasetrace.read import ids
from phasetrace.read.dialects import wanted
from phasetrace.read.json_text import values
from phasetrace.read.notes import Notes
from phasetrace.read.source import Source
from phasetrace.semconv import DERIVED_SPANS, Scope
from phasetrace.semconv import Attribute as A

# Lines that hold only spans of phases or tokens: what they say is in the steps, and they are most of a file.
PASSED_OVER = tuple(f'"scope":{{"name":"{scope}"'.encode() for scope in (Scope.PHASES, Scope.TOKENS))
OURS = frozenset(Scope)
SCOPES = ("scopeSpans", "instrumentationLibrarySpans", "scope_spans")
RESOURCES = ("resourceSpans", "batches", "resource_spans")
_WRAPPERS = ("result", "trace")
_MOST_WRAPPED = 8
_ERROR = (2, "2", "STATUS_CODE_ERROR", "ERROR")
_KINDS: dict[Any, Kind] = {
    **{kind.value: kind for kind in Kind},
    **{f"SPAN_KIND_{kind.name}": kind for kind in Kind},
    **{kind.name: kind for kind in Kind},
    **{str(kind.value): kind for kind in Kind},
}


def otlp_json(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of all documents that are of use."""
    for value in values(source, notes, PASSED_OVER):
        if value is None:  # a line of ours with nothing that its other lines do not say
            yield ResourceSpans({}, [], scope=Scope.TOKENS)
        for resource in resources(value, notes):
            yield from _groups(resource, notes)


def resources(value: Any, notes: Notes, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The `ResourceSpans` of a value, whatever they are wrapped in."""
    if depth > _MOST_WRAPPED:
        return
    if isinstance(value, list):
        for item in value:
            yield from resources(item, notes, depth + 1)
    elif isinstance(value, dict):
        if value.get("status") == "PARTIAL":
            notes.say(
                f"{notes.name} says that it is a part of a trace only: {value.get('message') or 'PARTIAL'}"
            )
        for key in RESOURCES:
            if key in value:
                yield from dicts(value[key])
                return
        if any(key in value for key in SCOPES):  # a bare one
            yield value
            return
        for wrapper in _WRAPPERS:
            if wrapper in value:
                yield from resources(value[wrapper], notes, depth + 1)


def _groups(resource: dict[str, Any], notes: Notes) -> Iterator[ResourceSpans]:
    known = attributes(as_dict(resource.get("resource")).get("attributes"))
    if (service := known.get(A.SERVICE_NAME)) is not None:
        notes.service(service)
    for key in SCOPES:
        for scope in dicts(resource.get(key)):
            name = str(as_dict(scope.get("scope") or scope.get("instrumentationLibrary")).get("name", ""))
            group = ResourceSpans(known, [], scope=name)
            ours = name in OURS
            for raw in dicts(scope.get("spans")):
                title = str(raw.get("name", ""))
                notes.spans(title)
                if (title in DERIVED_SPANS) if ours else not wanted(title, _keys(raw)):
                    continue
                try:
                    group.spans.append(_span(raw, title))
                except (KeyError, TypeError, ValueError, OverflowError):
                    notes.damaged += 1
            yield group


def _keys(raw: dict[str, Any]) -> Iterator[str]:
    pairs = raw.get("attributes")
    if isinstance(pairs, list):
        for pair in pairs:
            if isinstance(pair, dict):
                yield str(pair.get("key"))


def _span(raw: dict[str, Any], name: str) -> Span:
    start = ids.nanoseconds(raw["startTimeUnixNano"])
    status = as_dict(raw.get("status"))
    return Span(
        trace_id=ids.trace_id(raw["traceId"]),
        span_id=ids.span_id(raw["spanId"]),
        parent_span_id=ids.parent_id(raw.get("parentSpanId")),
        name=name,
        start_ns=start,
        end_ns=ids.nanoseconds(raw.get("endTimeUnixNano") or start),
        kind=kind(raw.get("kind")),
        attributes=attributes(raw.get("attributes")),
        error=str(status.get("message") or "error") if status.get("code") in _ERROR else None,
        events=tuple(
            Event(str(event.get("name", "")), ids.nanoseconds(event.get("timeUnixNano") or start))
            for event in dicts(raw.get("events"))
        )
        if raw.get("events")
        else (),
    )


def kind(value: Any) -> Kind:
    """A kind by its number or by its name."""
    return _KINDS.get(value, Kind.UNSPECIFIED) if isinstance(value, (int, str)) else Kind.UNSPECIFIED


def attributes(pairs: Any) -> Attributes:
    """Keys and values; what is empty or cannot be understood is left out."""
    found: Attributes = {}
    for pair in pairs if isinstance(pairs, list) else ():
        try:
            for form, raw in pair["value"].items():
                # Keys are few and met millions of times: interned, each is kept once.
                found[intern(pair["key"])] = _READERS[form](raw)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            continue
    return found


def _array(raw: Any) -> Value:
    items = [_value(item) for item in dicts(as_dict(raw).get("values")) if _is_plain(item)]
    return [item for item in items if item is not None]  # type: ignore[return-value]


def _value(value: dict[str, Any]) -> Value | None:
    for form, raw in value.items():
        try:
            return _READERS[form](raw)
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
    return None


_READERS: dict[str, Callable[[Any], Value]] = {
    "stringValue": str,
    "intValue": int,
    "doubleValue": float,
    "boolValue": bool,
    "bytesValue": b64decode,
    "arrayValue": _array,
}


def _is_plain(value: dict[str, Any]) -> bool:
    return "arrayValue" not in value


def as_dict(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of an array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
