"""Spans -> lines of OTLP JSON, one request body a line, as the Collector's file exporter writes them.

Token spans are nearly all of a trace, so they are made by one `%` over a template for a whole run of them:
twice as fast as one `%` each, and 20 times as fast as the official encoder. They stand on lines of their own,
and so do those of phases: whoever has the steps can pass these lines over unread.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import orjson

from phasetrace import __version__
from phasetrace.emit.text import valid
from phasetrace.mapping import Attributes, ResourceSpans, Span, TokenSpans, Value
from phasetrace.semconv import DERIVED_SPANS, Scope, SpanName
from phasetrace.semconv import Attribute as A

FULL_LINE = 512 << 10  # a line is ended before it grows beyond: parsed, it takes 20 times as much memory
_ERROR = 2  # OTLP's status code
_INTERNAL = 1  # OTLP's span kind


def to_lines(groups: Iterable[ResourceSpans]) -> Iterator[bytes]:
    """Encode spans with all that a file holds; each line ends in a newline and is a document of its own."""
    for group in groups:
        for scope in (Scope.ALL, Scope.PHASES):
            spans = (span for span in group.spans if (span.name in DERIVED_SPANS) == (scope is Scope.PHASES))
            yield from _lines(group.resource, scope, (orjson.dumps(_span(span)) for span in spans))
        yield from _lines(group.resource, Scope.TOKENS, (_tokens(run) for run in group.tokens if len(run)))


def _lines(resource: Attributes, scope: Scope, pieces: Iterable[bytes]) -> Iterator[bytes]:
    frame = b'{"resourceSpans":[{"resource":{"attributes":%b},"scopeSpans":[{"scope":%b,"spans":['
    named = {"name": scope.value, "version": __version__}
    head = frame % (orjson.dumps(_key_values(resource)), orjson.dumps(named))
    tail = b"]}]}]}\n"
    empty = len(head) + len(tail)
    line: list[bytes] = []
    size = empty
    for piece in pieces:
        if line and size + len(piece) + 1 > FULL_LINE:
            yield b"".join((head, b",".join(line), tail))
            line, size = [], empty
        line.append(piece)
        size += len(piece) + 1
    if line:
        yield b"".join((head, b",".join(line), tail))


def _span(span: Span) -> dict[str, Any]:
    document: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": valid(span.name),
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _key_values(span.attributes) + _key_values(span.kept),
    }
    if span.parent_span_id is not None:
        document["parentSpanId"] = span.parent_span_id
    if span.links:
        document["links"] = [{"traceId": trace, "spanId": ident} for trace, ident in span.links]
    if span.error is not None:
        document["status"] = {"code": _ERROR, "message": valid(span.error)}
    return document


def _key_values(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": valid(key), "value": _any_value(value)} for key, value in attributes.items()]


def _any_value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": _double(value)}
        case str():
            return {"stringValue": valid(value)}
        case bytes():
            return {"bytesValue": b64encode(value).decode()}
        case _:
            return {"arrayValue": _array(value)}


def _array(values: list[int] | list[str] | list[float]) -> Any:
    """Arrays of integers are long, one value a token, so they are written as text at once."""
    if values and all(type(item) is int for item in values):
        digits = '"},{"intValue":"'.join(map(str, values))
        return orjson.Fragment(f'{{"values":[{{"intValue":"{digits}"}}]}}')
    return {"values": [_any_value(item) for item in values]}


def _double(value: float) -> float | str:
    """JSON has no words for these three; protobuf's mapping gives them names."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _tokens(tokens: TokenSpans) -> bytes:
    n = len(tokens)
    columns = [tokens.first_id + np.arange(n), tokens.begin_ns, tokens.end_ns, tokens.index]
    several = bool((tokens.count != 1).any())
    if several:
        columns.append(tokens.count)
    values = np.stack(columns, axis=1).ravel().tolist()
    one = _token_template(several) % (tokens.trace_id, tokens.parent_span_id)
    return (",".join([one] * n) % tuple(values)).encode()


@lru_cache(maxsize=2)
def _token_template(several: bool) -> str:
    """A token span with holes for its trace and parent, and, once those are filled, for what differs."""
    attributes = [(A.TOKEN_INDEX, "%%d"), *([(A.TOKEN_COUNT, "%%d")] if several else [])]
    pairs = ",".join(f'{{"key":"{key}","value":{{"intValue":"{hole}"}}}}' for key, hole in attributes)
    return (
        '{"traceId":"%s","spanId":"%%016x","parentSpanId":"%s",'
        f'"name":"{SpanName.TOKEN}","kind":{_INTERNAL},'
        '"startTimeUnixNano":"%%d","endTimeUnixNano":"%%d",'
        f'"attributes":[{pairs}]}}'
    )
