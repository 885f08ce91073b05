"""Lines that any reader of OTLP JSON understands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from phasetrace.emit.otlp_json import FULL_LINE, to_lines
from phasetrace.mapping import ResourceSpans, Span, to_spans
from phasetrace.model import Recording, StepCount
from tests.builders import generation, recording, request, steps


def documents(recorded: Recording) -> list[dict[str, Any]]:
    return [json.loads(line) for line in to_lines(to_spans(recorded))]


def spans(recorded: Recording) -> list[dict[str, Any]]:
    return [
        span
        for document in documents(recorded)
        for resource in document["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: pair["value"] for pair in span["attributes"]}


def encoded(**values: Any) -> dict[str, Any]:
    span = Span("ab" * 16, "cd" * 8, None, "x", 1, 2, attributes=values)
    (line,) = to_lines([ResourceSpans({}, [span])])
    return attributes(json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0])


def test_every_line_is_a_request_body_of_the_protocol() -> None:
    for line in to_lines(to_spans(generation(tokens=20))):
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        json_format.Parse(line, TracesData())  # strict: refuses unknown fields and wrong types


def test_token_spans() -> None:
    found = [span for span in spans(generation(tokens=5)) if span["name"] == "token"]
    decode = next(span for span in spans(generation(tokens=5)) if span["name"] == "decode")
    assert [attributes(s)["phasetrace.token.index"]["intValue"] for s in found] == ["1", "2", "3", "4"]
    assert {s["parentSpanId"] for s in found} == {decode["spanId"]}
    assert {s["traceId"] for s in found} == {decode["traceId"]}
    assert len({s["spanId"] for s in found}) == 4
    assert found[0]["startTimeUnixNano"] == decode["startTimeUnixNano"]
    assert found[-1]["endTimeUnixNano"] == decode["endTimeUnixNano"]
    assert "phasetrace.token.count" not in attributes(found[0])


def test_token_spans_that_hold_several_tokens_say_how_many() -> None:
    taken = steps(3)
    asked = request(steps=taken, output=5, yields=(StepCount(1, 3),))
    found = [span for span in spans(recording(asked, steps=[taken])) if span["name"] == "token"]
    assert [attributes(s)["phasetrace.token.count"]["intValue"] for s in found] == ["3", "1"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, {"boolValue": True}),
        (1 << 62, {"intValue": str(1 << 62)}),
        (0.5, {"doubleValue": 0.5}),
        (float("nan"), {"doubleValue": "NaN"}),
        (float("-inf"), {"doubleValue": "-Infinity"}),
        ('"\\\n\x00é\U0001f600', {"stringValue": '"\\\n\x00é\U0001f600'}),
        ("lone \ud800 surrogate", {"stringValue": "lone ? surrogate"}),
        (b"\xff\x00", {"bytesValue": "/wA="}),
        ([1, 2], {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "2"}]}}),
    ],
)
def test_values(value: Any, expected: Any) -> None:
    assert encoded(key=value) == {"key": expected}


def test_a_percent_sign_in_a_name_is_only_a_percent_sign() -> None:
    taken = steps(3)
    asked = request(steps=taken, model="100%d")
    assert spans(recording(asked, steps=[taken], models={}))[-1]["name"] == "token"
    assert any(
        s["name"] == "text_completion 100%d" for s in spans(recording(asked, steps=[taken], models={}))
    )


def test_a_line_is_ended_before_it_is_too_long() -> None:
    many = [Span("ab" * 16, f"{n:016x}", None, "x" * 100_000, 1, 2) for n in range(100)]
    lines = list(to_lines([ResourceSpans({}, many)]))
    assert len(lines) > 1 and all(len(line) <= FULL_LINE for line in lines)
    assert sum(line.count(b'"spanId"') for line in lines) == 100


def test_an_error_has_its_status() -> None:
    failed = Span("ab" * 16, "cd" * 8, "ef" * 8, "x", 1, 2, error="KeyError", links=(("12" * 16, "34" * 8),))
    (line,) = to_lines([ResourceSpans({}, [failed])])
    span = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["status"] == {"code": 2, "message": "KeyError"}
    assert span["links"] == [{"traceId": "12" * 16, "spanId": "34" * 8}]
