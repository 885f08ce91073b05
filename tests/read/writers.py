"""One trace in every format, by the real writers where they are Python, else to the documented schema."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

BEGIN = 1_700_000_000_000_000_000  # whole microseconds, as are all times here: some formats hold no more
US, MS = 1_000, 1_000_000
VLLM = {
    "gen_ai.latency.time_to_first_token": 0.5,
    "gen_ai.latency.e2e": 2.0,
    "gen_ai.latency.time_in_queue": 0.125,
    "gen_ai.latency.time_in_model_prefill": 0.25,
    "gen_ai.latency.time_in_model_decode": 1.25,
    "gen_ai.latency.time_in_model_inference": 1.5,
    "gen_ai.usage.prompt_tokens": 2998,
    "gen_ai.usage.completion_tokens": 56,
    "gen_ai.request.id": "cmpl-1",
    "gen_ai.request.n": 1,
    "gen_ai.request.temperature": 1.0,
    "gen_ai.response.finish_reasons": ("stop",),
}


def spans(count: int = 3, **changed: Any) -> Sequence[ReadableSpan]:
    """Requests under a span of HTTP, made by the real SDK."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "vllm-test"}), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    server = provider.get_tracer("http").start_span("POST /v1", kind=SpanKind.SERVER, start_time=BEGIN)
    context = set_span_in_context(server)
    for number in range(count):
        begin = BEGIN + number * 10 * MS
        span = provider.get_tracer("vllm.llm_engine").start_span(
            "llm_request",
            context,
            SpanKind.SERVER,
            {**VLLM, **changed},
            start_time=begin,
        )
        span.add_event("received", timestamp=begin + 5 * US)
        if number == 2:
            span.set_status(Status(StatusCode.ERROR, "gone"))
        span.end(begin + 2_000 * MS)
    server.end(BEGIN + 3_000 * MS)
    return kept.get_finished_spans()


def protobuf(made: Sequence[ReadableSpan]) -> bytes:
    """A request body, by the real encoder."""
    return encode_spans(made).SerializeToString()


def framed(made: Sequence[ReadableSpan]) -> bytes:
    """As the Collector's file exporter writes protobuf: each message behind its length."""
    bodies = [protobuf([span]) for span in made]
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def by_the_book(made: Sequence[ReadableSpan]) -> dict[str, Any]:
    """Protobuf's own JSON: ids in base64, enums by name, as Tempo prints it."""
    return MessageToDict(encode_spans(made))  # type: ignore[no-any-return]


def otlp(made: Sequence[ReadableSpan], upper: bool = False) -> dict[str, Any]:
    """OTLP JSON: ids in hex, enums as numbers."""
    kinds = {"SPAN_KIND_INTERNAL": 1, "SPAN_KIND_SERVER": 2, "SPAN_KIND_CLIENT": 3}

    def fixed(value: Any) -> Any:
        if isinstance(value, list):
            return [fixed(item) for item in value]
        if not isinstance(value, dict):
            return value
        found = {key: fixed(item) for key, item in value.items()}
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in found:
                text = b64decode(found[key]).hex()
                found[key] = text.upper() if upper else text
        if "kind" in found:
            found["kind"] = kinds[found["kind"]]
        if found.get("code") == "STATUS_CODE_ERROR":
            found["code"] = 2
        return found

    return fixed(by_the_book(made))  # type: ignore[no-any-return]


def console(made: Sequence[ReadableSpan]) -> str:
    """What the console exporter prints, with a program's own lines in between."""
    return "INFO: started {fine}\n" + "\n{}\n".join(span.to_json() for span in made) + "\nbye\n"


def jaeger(made: Sequence[ReadableSpan]) -> dict[str, Any]:
    """What Jaeger's query service gives for one trace."""
    types = {str: "string", bool: "bool", int: "int64", float: "float64"}

    def tags(values: Mapping[str, Any]) -> list[dict[str, Any]]:
        plain = {k: json.dumps(v) if isinstance(v, tuple) else v for k, v in values.items()}
        return [{"key": k, "type": types[type(v)], "value": v} for k, v in plain.items()]

    found = []
    for span in made:
        failed = span.status.status_code is StatusCode.ERROR
        extra = {"span.kind": span.kind.name.lower(), "otel.scope.name": scope(span)}
        if failed:
            extra |= {"error": True, "otel.status_description": span.status.description}
        found.append(
            {
                "traceID": trace_id(span),
                "spanID": span_id(span),
                "operationName": span.name,
                "references": [
                    {"refType": "FOLLOWS_FROM", "traceID": "1", "spanID": "2"},
                    *parent_reference(span),
                ],
                "startTime": span.start_time // US,
                "duration": (span.end_time - span.start_time) // US,
                "tags": tags({**span.attributes, **extra}),
                "logs": [
                    {"timestamp": e.timestamp // US, "fields": tags({"event": e.name})} for e in span.events
                ],
                "processID": "p1",
                "warnings": None,
            }
        )
    processes = {"p1": {"serviceName": "vllm-test", "tags": []}}
    return {"data": [{"traceID": trace_id(made[0]), "spans": found, "processes": processes}], "errors": None}


def zipkin(made: Sequence[ReadableSpan]) -> list[dict[str, Any]]:
    """What OpenTelemetry's Zipkin exporters send: every tag a string."""
    found = []
    for span in made:
        tags = {k: json.dumps(v) if isinstance(v, tuple) else str(v) for k, v in span.attributes.items()}
        if span.status.status_code is StatusCode.ERROR:
            tags |= {"otel.status_code": "ERROR", "error": span.status.description}
        found.append(
            {
                "traceId": trace_id(span),
                "id": span_id(span),
                "name": span.name,
                "kind": span.kind.name,
                "timestamp": span.start_time // US,
                "duration": (span.end_time - span.start_time) // US,
                "localEndpoint": {"serviceName": "vllm-test"},
                "tags": {**tags, "otel.scope.name": scope(span)},
            }
            | ({"parentId": f"{span.parent.span_id:016x}"} if span.parent else {})
        )
    return found


def bare(made: Sequence[ReadableSpan]) -> dict[str, Any]:
    """What people make by hand of it, with times in milliseconds."""
    return {
        "spans": [
            {
                "name": span.name,
                "traceId": trace_id(span),
                "spanId": span_id(span),
                "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else None,
                "startTime": span.start_time // MS,
                "endTime": span.end_time // MS,
                "kind": span.kind.name,
                "status": {"code": span.status.status_code.name, "message": span.status.description},
                "attributes": {k: list(v) if isinstance(v, tuple) else v for k, v in span.attributes.items()},
            }
            for span in made
        ]
    }


def old(made: Sequence[ReadableSpan]) -> dict[str, Any]:
    """As writers from before 2022 named the scopes."""
    text = json.dumps(otlp(made))
    return json.loads(  # type: ignore[no-any-return]
        text.replace('"scopeSpans"', '"instrumentationLibrarySpans"').replace(
            '"scope"', '"instrumentationLibrary"'
        )
    )


def trace_id(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"


def span_id(span: ReadableSpan) -> str:
    return f"{span.context.span_id:016x}"


def scope(span: ReadableSpan) -> str:
    return span.instrumentation_scope.name


def parent_reference(span: ReadableSpan) -> list[dict[str, str]]:
    if span.parent is None:
        return []
    return [{"refType": "CHILD_OF", "traceID": trace_id(span), "spanID": f"{span.parent.span_id:016x}"}]
