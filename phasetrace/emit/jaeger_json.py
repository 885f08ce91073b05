"""Spans -> Jaeger's JSON, as its user interface takes it. Times are microseconds there, so less is lost.

What a recording needs beside them is in tags, to the nanosecond.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from phasetrace.emit.each_span import each_span
from phasetrace.emit.text import valid
from phasetrace.mapping import Attributes, Kind, ResourceSpans, Span, Value
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Scope

_US = 1000
_LARGEST = (1 << 53) - 1  # an integer of JavaScript; what is larger is written as text


def to_jaeger(groups: Iterable[ResourceSpans]) -> Iterator[bytes]:
    """One document with all traces, in pieces."""
    traces: dict[str, list[dict[str, Any]]] = {}
    processes: dict[str, dict[str, Any]] = {}
    for group in groups:
        key = f"p{len(processes) + 1}"
        process = _process(group.resource)
        key = next((known for known, value in processes.items() if value == process), key)
        processes[key] = process
        for scope, span in each_span(group):
            traces.setdefault(span.trace_id, []).append(_span(span, scope, key))
    yield b'{"data":['
    for number, (trace, spans) in enumerate(traces.items()):
        used = {span["processID"] for span in spans}
        document = {
            "traceID": trace,
            "spans": spans,
            "processes": {key: value for key, value in processes.items() if key in used},
            "warnings": None,
        }
        yield (b",\n" if number else b"") + orjson.dumps(document)
    yield b'],"total":0,"limit":0,"offset":0,"errors":null}\n'


def _process(resource: Attributes) -> dict[str, Any]:
    rest = {key: value for key, value in resource.items() if key != A.SERVICE_NAME}
    return {"serviceName": valid(str(resource.get(A.SERVICE_NAME, "phasetrace"))), "tags": _tags(rest)}


def _span(span: Span, scope: Scope, process: str) -> dict[str, Any]:
    tags = _tags(span.attributes) + _tags(span.kept) + _tags({"otel.scope.name": scope.value})
    if span.kind is not Kind.UNSPECIFIED:
        tags += _tags({"span.kind": span.kind.name.lower()})
    if span.error is not None:
        tags += _tags({"error": True, "otel.status_code": "ERROR", "otel.status_description": span.error})
    start = span.start_ns // _US
    references = []
    if span.parent_span_id is not None:
        references.append({"refType": "CHILD_OF", "traceID": span.trace_id, "spanID": span.parent_span_id})
    for trace, ident in span.links:
        references.append({"refType": "FOLLOWS_FROM", "traceID": trace, "spanID": ident})
    return {
        "traceID": span.trace_id,
        "spanID": span.span_id,
        "operationName": valid(span.name),
        "references": references,
        "startTime": start,
        "duration": max(0, span.end_ns // _US - start),
        "tags": tags,
        "logs": [],
        "processID": process,
        "warnings": None,
    }


def _tags(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": valid(key), **_typed(value)} for key, value in attributes.items()]


def _typed(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "bool", "value": value}
        case int():
            return {"type": "int64", "value": value if abs(value) <= _LARGEST else str(value)}
        case float():
            finite = value == value and abs(value) != float("inf")
            return {"type": "float64", "value": value if finite else str(value)}
        case bytes():
            return {"type": "binary", "value": b64encode(value).decode()}
        case str():
            return {"type": "string", "value": valid(value)}
    plain = [valid(item) if isinstance(item, str) else item for item in value]
    return {"type": "string", "value": orjson.dumps(plain).decode()}
