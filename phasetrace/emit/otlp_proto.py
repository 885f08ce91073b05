"""Spans -> OTLP protobuf: one request body, written piece by piece. Nothing of a recording is lost in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans as Message
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status, TracesData

from phasetrace import __version__
from phasetrace.emit.each_span import each_span
from phasetrace.emit.text import valid
from phasetrace.mapping import Attributes, ResourceSpans, Span, Value
from phasetrace.semconv import Scope

_FULL = 4096  # spans of a message: more would have to be in memory at once


def to_protobuf(groups: Iterable[ResourceSpans]) -> Iterator[bytes]:
    """Pieces that make one request body when they are laid end to end, as protobuf's messages merge."""
    for group in groups:
        for scope, same in groupby(each_span(group), key=lambda pair: pair[0]):
            message = _message(group.resource, scope)
            for _, span in same:
                _fill(message.scope_spans[0].spans.add(), span)
                if len(message.scope_spans[0].spans) >= _FULL:
                    yield TracesData(resource_spans=[message]).SerializeToString()
                    message = _message(group.resource, scope)
            if message.scope_spans[0].spans:
                yield TracesData(resource_spans=[message]).SerializeToString()


def _message(resource: Attributes, scope: Scope) -> Message:
    message = Message()
    message.resource.attributes.extend(_pairs(resource))
    made = message.scope_spans.add()
    made.scope.name, made.scope.version = scope.value, __version__
    return message


def _fill(message: SpanMessage, span: Span) -> None:
    message.trace_id, message.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    if span.parent_span_id is not None:
        message.parent_span_id = bytes.fromhex(span.parent_span_id)
    message.name = valid(span.name)
    message.kind = int(span.kind)  # type: ignore[assignment]
    message.start_time_unix_nano, message.end_time_unix_nano = span.start_ns, span.end_ns
    message.attributes.extend(_pairs(span.attributes))
    message.attributes.extend(_pairs(span.kept))
    for trace, ident in span.links:
        message.links.add(trace_id=bytes.fromhex(trace), span_id=bytes.fromhex(ident))
    if span.error is not None:
        message.status.code, message.status.message = Status.STATUS_CODE_ERROR, valid(span.error)


def _pairs(attributes: Attributes) -> Iterator[KeyValue]:
    for key, value in attributes.items():
        yield KeyValue(key=valid(key), value=_value(value))


def _value(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=valid(value))
        case bytes():
            return AnyValue(bytes_value=value)
    made = AnyValue()
    made.array_value.values.extend(_value(item) for item in value)
    return made
