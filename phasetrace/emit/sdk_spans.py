"""Spans as the OpenTelemetry SDK's own kind, which its exporters take."""

from __future__ import annotations

import os
from collections.abc import Iterator

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from phasetrace import __version__
from phasetrace.emit.text import brief
from phasetrace.mapping import Attributes, Kind, ResourceSpans, Span, TokenSpans, Value
from phasetrace.semconv import DERIVED_SPANS, Scope, SpanName
from phasetrace.semconv import Attribute as A

_SCOPE = InstrumentationScope(Scope.ALL.value, __version__)
_PHASES = InstrumentationScope(Scope.PHASES.value, __version__)
_TOKENS = InstrumentationScope(Scope.TOKENS.value, __version__)
_KINDS = {Kind.SERVER: SpanKind.SERVER, Kind.CLIENT: SpanKind.CLIENT}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def to_sdk_spans(group: ResourceSpans) -> Iterator[ReadableSpan]:
    """The spans of one process, one by one: tokens may be many."""
    resource = to_resource(group.resource)
    for span in group.spans:
        yield _span(span, resource)
    for run in group.tokens:
        yield from _token_spans(run, resource)


def to_resource(attributes: Attributes) -> Resource:
    """What made the spans. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before what we know."""
    plain = _plain(attributes)
    given = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if os.environ.get("OTEL_SERVICE_NAME") or f"{A.SERVICE_NAME}=" in given:
        plain.pop(A.SERVICE_NAME.value, None)
    return Resource.create(plain)


def _span(span: Span, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        name=brief(str(span.name)),
        context=_context(span.trace_id, span.span_id),
        parent=_context(span.trace_id, span.parent_span_id) if span.parent_span_id else None,
        resource=resource,
        attributes=_plain(span.attributes),
        links=[Link(_context(*link)) for link in span.links],
        kind=_KINDS.get(span.kind, SpanKind.INTERNAL),
        instrumentation_scope=_PHASES if span.name in DERIVED_SPANS else _SCOPE,
        status=Status(StatusCode.ERROR, brief(span.error)) if span.error else Status(),
        start_time=span.start_ns,
        end_time=span.end_ns,
    )


def _token_spans(run: TokenSpans, resource: Resource) -> Iterator[ReadableSpan]:
    parent = _context(run.trace_id, run.parent_span_id)
    columns = (run.begin_ns, run.end_ns, run.index, run.count)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for number, (begin, end, index, count) in enumerate(rows):
        attributes = {A.TOKEN_INDEX.value: index}
        if count != 1:
            attributes[A.TOKEN_COUNT.value] = count
        yield ReadableSpan(
            name=SpanName.TOKEN.value,
            context=SpanContext(parent.trace_id, run.first_id + number, False, _SAMPLED),
            parent=parent,
            resource=resource,
            attributes=attributes,
            instrumentation_scope=_TOKENS,
            start_time=begin,
            end_time=end,
        )


def _plain(attributes: Attributes) -> dict[str, Value]:
    return {str(key): brief(v) if isinstance(v, str) else v for key, v in attributes.items()}


def _context(trace_id: str, span_id: str) -> SpanContext:
    return SpanContext(int(trace_id, 16), int(span_id, 16), False, _SAMPLED)
