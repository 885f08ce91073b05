"""Jaeger's JSON, as its query service gives it and its user interface saves it.

Times are microseconds, so what is shorter is zero. Tags are typed, but large integers are strings and arrays
are JSON text.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator
from sys import intern
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder

from phasetrace.mapping import Attributes, Event, Kind, ResourceSpans, Span, Value
from phasetrace.read import ids
from phasetrace.read.dialects import wanted
from phasetrace.read.json_text import decoded, documents
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import OURS
from phasetrace.read.source import Source
from phasetrace.semconv import DERIVED_SPANS
from phasetrace.semconv import Attribute as A

_SCOPES = ("otel.scope.name", "otel.library.name")
# Keys whose values are lists. A text under any other key stays one, even if it looks like a list.
_LISTS = frozenset(
    (
        *(A.FINISH_REASONS, A.DERIVED, A.PROMPT_TOKENS, A.PADDING_TOKENS, A.SEQUENCE_TOKENS),
        *(A.SEQUENCE_REASONS, A.ITL, A.TROUBLES, A.UNCOVERED, A.DEFECTS),
    )
)
_EVENT_NAMES = ("event", "message")
_KINDS = {kind.name.lower(): kind for kind in Kind}


class _Tag(Struct, gc=False):
    key: str
    value: Any = None
    type: Any = None


class _Log(Struct, gc=False):
    timestamp: Any = None
    fields: list[_Tag] | None = None


class _Reference(Struct, gc=False):
    refType: Any = None
    traceID: Any = None
    spanID: Any = None


class _Process(Struct, gc=False):
    serviceName: Any = None
    tags: list[_Tag] | None = None


class _Span(Struct, gc=False):
    traceID: Any
    spanID: Any
    startTime: Any
    duration: Any = None
    operationName: str | None = None
    parentSpanID: Any = None
    processID: Any = None
    process: _Process | None = None  # as in Elasticsearch, where each span has its own
    tags: list[_Tag] | None = None
    references: list[_Reference] | None = None
    logs: list[_Log] | None = None
    warnings: Any = None


class _Trace(Struct):
    spans: list[Raw] | None = None
    processes: dict[str, _Process] | None = None
    warnings: Any = None


class _Document(Struct):
    data: list[_Trace] | None = None
    errors: Any = None


_DOCUMENT = Decoder(_Document)
_SPAN = Decoder(_Span)


def jaeger(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of all traces in the document, or in several one after another."""
    for whole in documents(source, notes, _DOCUMENT):
        for trace in whole.data or ():
            for warning in [*_texts(trace.warnings), *_texts(whole.errors)]:
                notes.say(f"Jaeger says of a trace in {notes.name}: {warning}")
            processes = {key: _process(value, notes) for key, value in (trace.processes or {}).items()}
            for text in trace.spans or ():
                try:
                    if (group := _group(decoded(_SPAN, text), processes, notes)) is not None:
                        yield group
                except (KeyError, TypeError, ValueError, OverflowError):
                    notes.damaged += 1


def _group(raw: _Span, processes: dict[str, Attributes], notes: Notes) -> ResourceSpans | None:
    """A span with its process; None where it is of no use, as most of an application's are."""
    name = raw.operationName or ""
    notes.spans(name)
    scope, keys = "", []
    for tag in raw.tags or ():
        keys.append(key := tag.key)
        if key in _SCOPES:
            scope = scope or str(tag.value)
    if (name in DERIVED_SPANS) if scope in OURS else not wanted(name, keys):
        return None
    if any("clock skew" in warning for warning in _texts(raw.warnings)):
        notes.say(
            f"Jaeger moved spans of {notes.name} for what it takes for clock skew: export with `?raw=true`"
        )
    process = processes.get(str(raw.processID), {}) if raw.process is None else _process(raw.process, notes)
    return ResourceSpans(process, [_span(raw, name)], scope=scope)


def _span(raw: _Span, name: str) -> Span:
    attributes = _tags(raw.tags)
    start = ids.microseconds(raw.startTime)
    trace = ids.trace_id(raw.traceID)
    failed = attributes.get("error") in (True, "true") or attributes.get("otel.status_code") == "ERROR"
    return Span(
        trace_id=trace,
        span_id=ids.span_id(raw.spanID),
        parent_span_id=_parent(raw, trace),
        name=name,
        start_ns=start,
        end_ns=start + ids.microseconds(raw.duration or 0),
        kind=_KINDS.get(str(attributes.get("span.kind")), Kind.INTERNAL),
        attributes=attributes,
        error=str(attributes.get("otel.status_description") or "error") if failed else None,
        events=tuple(_events(raw.logs)) if raw.logs else (),
    )


def _parent(raw: _Span, trace: str) -> str | None:
    """The first span of the same trace that this one is a child of."""
    for reference in raw.references or ():
        if reference.refType == "CHILD_OF" and ids.trace_id(reference.traceID or trace) == trace:
            return ids.parent_id(reference.spanID)
    return ids.parent_id(raw.parentSpanID)


def _events(logs: Iterable[_Log]) -> Iterator[Event]:
    for log in logs:
        fields = _tags(log.fields)
        name = next((str(fields[key]) for key in _EVENT_NAMES if key in fields), "")
        yield Event(name, ids.microseconds(log.timestamp or 0))


def _process(value: _Process, notes: Notes) -> Attributes:
    found = _tags(value.tags)
    if value.serviceName is not None:
        found[A.SERVICE_NAME] = str(value.serviceName)
        notes.service(value.serviceName)
    return found


def _tags(tags: Iterable[_Tag] | None) -> Attributes:
    found: Attributes = {}
    for tag in tags or ():
        if (value := _value(tag.key, tag.value, tag.type)) is not None:
            found[intern(tag.key)] = value
    return found


def _value(key: str, value: Any, form: Any) -> Value | None:
    if form == "string" and type(value) is str and key not in _LISTS:
        return value
    try:
        match form:
            case "int64":
                return int(value)
            case "float64":
                return float(value)
            case "bool":
                return value if isinstance(value, bool) else str(value) == "true"
            case "binary":
                return b64decode(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return text_or_list(key, str(value)) if isinstance(value, str) else plain(value)


def text_or_list(key: str, text: str) -> Value:
    """A text, or the list whose JSON it is: formats that know no arrays write them so."""
    if key in _LISTS and text.startswith("[") and text.endswith("]"):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if all(type(item) is str for item in found) or all(type(item) in (int, float) for item in found):
            return found  # type: ignore[no-any-return]
    return text


def plain(value: Any) -> Value | None:
    """A JSON value as an attribute's; objects and mixed arrays are none."""
    if isinstance(value, list):
        items = [item for item in value if isinstance(item, (str, int, float))]
        return items  # type: ignore[return-value]
    return value if isinstance(value, (bool, int, float, str)) else None


def _texts(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
