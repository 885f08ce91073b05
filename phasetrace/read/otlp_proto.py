"""OTLP protobuf: request bodies as they are sent, or behind their lengths as the Collector writes files.

Read one `ResourceSpans` at a time, so that a file of any size fits into memory and one that is cut off gives
what is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans as Message
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from phasetrace.mapping import Attributes, Event, ResourceSpans, Span, Value
from phasetrace.read import ids
from phasetrace.read.dialects import wanted
from phasetrace.read.notes import Notes
from phasetrace.read.otlp_json import OURS, kind
from phasetrace.read.source import LONGEST, Source
from phasetrace.read.unpack import LENGTH
from phasetrace.semconv import DERIVED_SPANS
from phasetrace.semconv import Attribute as A

RESOURCE_SPANS = b"\x0a"  # field 1 of a request body, of a length
_LIST = b"\x12"  # field 2: the scopes of a resource, and the spans of a scope
_WIRE_TYPE, _OF_A_LENGTH = 7, 2  # of a tag
_LONGEST_VARINT = 10  # bytes


def is_plain(head: bytes) -> bool:
    """Whether this begins like a request body: field 1, whose first field is again a message or a scope."""
    return (
        head.startswith(RESOURCE_SPANS)
        and (inner := _after_varint(head, 1)) is not None
        and (head[inner : inner + 1] in (b"\x0a", b"\x12"))
    )


def is_framed(head: bytes) -> bool:
    """Whether this begins with a length and a request body of that length."""
    length = int.from_bytes(head[:LENGTH], "big")
    if not 2 <= length <= LONGEST or not is_plain(head[LENGTH:]):
        return False
    following = head[LENGTH + length : 2 * LENGTH + length + 1]  # the next length and body, where in sight
    return len(following) <= LENGTH or following.endswith(RESOURCE_SPANS)


def plain(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of a request body, or of several that were appended to each other."""
    while tag := source.read(1):
        length = _varint(source)
        if tag != RESOURCE_SPANS or length is None or length > LONGEST:
            notes.cut = True
            return
        yield from _resource(source.read(length), length, notes)
    notes.cut = notes.cut or source.cut


def framed(source: Source, notes: Notes) -> Iterator[ResourceSpans]:
    """The spans of bodies behind lengths."""
    while prefix := source.read(LENGTH):
        length = int.from_bytes(prefix, "big")
        if len(prefix) < LENGTH or length > LONGEST:
            notes.cut = True
            return
        body = source.read(length)
        notes.cut = notes.cut or len(body) < length
        at = 0
        while body[at : at + 1] == RESOURCE_SPANS and (begin := _after_varint(body, at + 1)) is not None:
            size = _varint_at(body, at + 1)
            yield from _resource(body[begin : begin + size], size, notes)
            at = begin + size
        if at < len(body):
            notes.say(f"messages of {notes.name} hold what is no trace: left out")
    notes.cut = notes.cut or source.cut


def _resource(data: bytes, length: int, notes: Notes) -> Iterator[ResourceSpans]:
    if len(data) < length:
        notes.cut = True
        data = _whole(data, 1)
        if not data:
            return
    message = Message()
    try:
        message.ParseFromString(data)
    except DecodeError:
        notes.damaged += 1
        return
    notes.documents += 1
    known = _attributes(message.resource.attributes)
    if (service := known.get(A.SERVICE_NAME)) is not None:
        notes.service(service)
    for scope in message.scope_spans:
        group = ResourceSpans(known, [], scope=scope.scope.name)
        ours = group.scope in OURS
        for raw in scope.spans:
            notes.spans(raw.name)
            if (raw.name in DERIVED_SPANS) if ours else not wanted(raw.name, (p.key for p in raw.attributes)):
                continue
            try:
                group.spans.append(_span(raw))
            except ValueError:
                notes.damaged += 1
        yield group


def _span(raw: SpanMessage) -> Span:
    start = ids.nanoseconds(raw.start_time_unix_nano)
    failed = raw.status.code == Status.STATUS_CODE_ERROR
    return Span(
        trace_id=ids.trace_id(raw.trace_id.hex()),
        span_id=ids.span_id(raw.span_id.hex()),
        parent_span_id=ids.parent_id(raw.parent_span_id.hex()),
        name=raw.name,
        start_ns=start,
        end_ns=ids.nanoseconds(raw.end_time_unix_nano or start),
        kind=kind(int(raw.kind)),
        attributes=_attributes(raw.attributes),
        error=(raw.status.message or "error") if failed else None,
        events=tuple(Event(e.name, ids.nanoseconds(e.time_unix_nano)) for e in raw.events),
    )


def _attributes(pairs: Iterable[KeyValue]) -> Attributes:
    found: Attributes = {}
    for pair in pairs:
        value = _value(pair.value)
        if value is not None:
            found[pair.key] = value
    return found


def _value(value: AnyValue) -> Value | None:
    form = value.WhichOneof("value")
    if form == "array_value":
        items = [_value(item) for item in value.array_value.values if not item.HasField("array_value")]
        return [item for item in items if item is not None]  # type: ignore[return-value]
    if form is None or form not in ("string_value", "bool_value", "int_value", "double_value", "bytes_value"):
        return None
    found: Value = getattr(value, form)
    return found


def _whole(data: bytes, levels: int) -> bytes:
    """The whole fields of a message that is cut off, and of a list that is cut so many levels down."""
    at = 0
    while at < len(data) and (begin := _after_varint(data, at + 1)) is not None:
        end = begin + _varint_at(data, at + 1)
        if data[at] & _WIRE_TYPE != _OF_A_LENGTH:
            break
        if end > len(data):
            inside = _whole(data[begin:], levels - 1) if levels and data[at : at + 1] == _LIST else b""
            return data[:at] + (_LIST + _as_varint(len(inside)) + inside if inside else b"")
        at = end
    return data[:at]


def _as_varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _varint(source: Source) -> int | None:
    data = b""
    while len(data) < _LONGEST_VARINT and (byte := source.read(1)):
        data += byte
        if byte < b"\x80":
            return _varint_at(data, 0)
    return None


def _after_varint(data: bytes, at: int) -> int | None:
    """Where the number that begins there has ended."""
    for end in range(at, min(at + _LONGEST_VARINT, len(data))):
        if data[end] < 0x80:
            return end + 1
    return None


def _varint_at(data: bytes, at: int) -> int:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        if data[at] < 0x80:
            return number
        at, shift = at + 1, shift + 7
