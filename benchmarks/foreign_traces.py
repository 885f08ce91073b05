"""Large traces as other tools write them, made by template: an application's spans, some of them requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

BEGIN = 1_700_000_000_000_000_000
SPANS_A_LINE = 100
_LATENCY = "gen_ai.latency."


def otlp_lines(path: Path, spans: int, one_in: int) -> Path:
    """As the Collector's file exporter; one span in `one_in` is vLLM's of a request, the rest are HTTP's."""
    head = b'{"resourceSpans":[{"resource":{"attributes":[%b]},"scopeSpans":[{"scope":{"name":"%b"},"spans":['
    heads = {
        scope: head % (_pair("service.name", '{"stringValue":"shop"}').encode(), scope)
        for scope in (b"vllm.llm_engine", b"http")
    }
    with path.open("wb") as file:
        for first in range(0, spans, SPANS_A_LINE):
            groups: dict[bytes, list[bytes]] = {}
            for number in range(first, min(first + SPANS_A_LINE, spans)):
                request = number % one_in == 0
                groups.setdefault(b"vllm.llm_engine" if request else b"http", []).append(
                    otlp_span(number, request)
                )
            for scope, made in groups.items():
                file.write(heads[scope] + b",".join(made) + b"]}]}]}\n")
    return path


def jaeger_document(path: Path, spans: int, one_in: int) -> Path:
    """What Jaeger's query service gives for many traces: one line, each trace's processes after its spans."""
    with path.open("wb") as file:
        file.write(b'{"data":[')
        for first in range(0, spans, SPANS_A_LINE):
            last = min(first + SPANS_A_LINE, spans)
            made = b",".join(jaeger_span(n, n % one_in == 0) for n in range(first, last))
            file.write(b"," if first else b"")
            file.write(b'{"traceID":"%032x","spans":[%b],"processes":' % (first // SPANS_A_LINE + 1, made))
            file.write(b'{"p1":{"serviceName":"shop","tags":[]}},"warnings":null}')
        file.write(b'],"total":0,"limit":0,"offset":0,"errors":null}')
    return path


def otlp_span(number: int, request: bool) -> bytes:
    """One span of an endless stream, a millisecond after the one before."""
    attributes = ",".join(_pair(key, _otlp_value(value)) for key, value in _values(number, request))
    begin = BEGIN + number * 1_000_000
    end = begin + _length(number, request)
    return (
        f'{{"traceId":"{number // SPANS_A_LINE + 1:032x}","spanId":"{number + 1:016x}","parentSpanId":"",'
        f'"flags":256,"name":"{_name(request)}","kind":2,"startTimeUnixNano":"{begin}",'
        f'"endTimeUnixNano":"{end}","attributes":[{attributes}],"status":{{}}}}'
    ).encode()


def jaeger_span(number: int, request: bool) -> bytes:
    """The same as Jaeger's."""
    scope = "vllm.llm_engine" if request else "http"
    values = [*_values(number, request), ("otel.scope.name", scope), ("span.kind", "server")]
    tags = ",".join(_jaeger_tag(key, value) for key, value in values)
    begin = BEGIN + number * 1_000_000
    return (
        f'{{"traceID":"{number // SPANS_A_LINE + 1:032x}","spanID":"{number + 1:016x}",'
        f'"operationName":"{_name(request)}","references":[],"startTime":{begin // 1000},'
        f'"duration":{_length(number, request) // 1000},"tags":[{tags}],"logs":[],"processID":"p1",'
        '"warnings":null}'
    ).encode()


def _name(request: bool) -> str:
    return "llm_request" if request else "GET /cart"


def _length(number: int, request: bool) -> int:
    return round(sum(_phases(number)) * 1e9) + 10_000_000 if request else 2_000_000


def _phases(number: int) -> tuple[float, float, float]:
    """Queue, prefill, decode, in seconds; no two requests alike."""
    noise = number * 2_654_435_761 % (1 << 32) / (1 << 32)
    return 0.2 * noise, 0.05 + 0.5 * noise, 3 * noise + 0.5


def _values(number: int, request: bool) -> Iterator[tuple[str, str | int | float]]:
    if not request:
        yield from (("http.request.method", "GET"), ("url.path", "/cart"), ("server.port", 8080))
        yield from (("http.response.status_code", 200), ("user_agent.original", "Mozilla/5.0"))
        return
    queue, prefill, decode = _phases(number)
    yield _LATENCY + "time_to_first_token", queue + prefill + 0.004
    yield _LATENCY + "e2e", queue + prefill + decode + 0.006
    yield _LATENCY + "time_in_queue", queue
    yield _LATENCY + "time_in_model_prefill", prefill
    yield _LATENCY + "time_in_model_decode", decode
    yield _LATENCY + "time_in_model_inference", prefill + decode
    yield "gen_ai.usage.prompt_tokens", 100 + number % 3900
    yield "gen_ai.usage.completion_tokens", 20 + number % 300
    yield "gen_ai.request.id", f"cmpl-{number:032x}"
    yield "gen_ai.request.max_tokens", 512
    yield "gen_ai.request.temperature", 0.7
    yield "gen_ai.request.top_p", 0.9
    yield "gen_ai.request.n", 1


def _pair(key: str, value: str) -> str:
    return f'{{"key":"{key}","value":{value}}}'


def _otlp_value(value: str | int | float) -> str:
    match value:
        case str():
            return f'{{"stringValue":"{value}"}}'
        case int():
            return f'{{"intValue":"{value}"}}'
    return f'{{"doubleValue":{value!r}}}'


def _jaeger_tag(key: str, value: str | int | float) -> str:
    match value:
        case str():
            return f'{{"key":"{key}","type":"string","value":"{value}"}}'
        case int():
            return f'{{"key":"{key}","type":"int64","value":{value}}}'
    return f'{{"key":"{key}","type":"float64","value":{value!r}}}'
