"""What is written in another tool's format is read back equal, as far as the format goes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from phasetrace.emit.jaeger_json import to_jaeger
from phasetrace.emit.otlp_proto import to_protobuf
from phasetrace.mapping import ResourceSpans, to_spans
from phasetrace.model import Recording, Stage
from phasetrace.read import read
from tests.builders import generation, plain
from tests.mapping.strategies import recordings

Write = Callable[[Iterable[ResourceSpans]], Iterator[bytes]]
US = 1000


def back(write: Write, recorded: Recording, path: Path) -> Recording:
    path.write_bytes(b"".join(write(to_spans(recorded))))
    return read(path)


@given(recorded=recordings())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_protobuf_loses_nothing(recorded: Recording, tmp_path: Path) -> None:
    assert plain(back(to_protobuf, recorded, tmp_path / "t")) == plain(recorded)


@given(recorded=recordings())
@example(recorded=Recording(stages=(Stage("p", "b", 1, 5), Stage("p", "a", 2, 7))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_jaeger_loses_less_than_a_microsecond_of_arrivals_and_stages(
    recorded: Recording, tmp_path: Path
) -> None:
    requests = tuple(replace(r, arrival_ns=r.arrival_ns // US * US) for r in recorded.requests)
    found = back(to_jaeger, recorded, tmp_path / "t")
    assert plain(replace(found, stages=())) == plain(replace(recorded, requests=requests, stages=()))
    # Which of two stages in one microsecond came first is lost, too
    stages = sorted(recorded.stages, key=lambda stage: (stage.begin_ns // US, stage.process, stage.name))
    for mine, theirs in zip(stages, found.stages, strict=True):
        assert (mine.process, mine.name) == (theirs.process, theirs.name)
        assert 0 <= mine.begin_ns - theirs.begin_ns < US
        assert abs((mine.end_ns - mine.begin_ns) - (theirs.end_ns - theirs.begin_ns)) < US


def test_protobuf_is_one_request_body() -> None:
    data = b"".join(to_protobuf(to_spans(generation(tokens=20))))
    body = ExportTraceServiceRequest.FromString(data)
    names = [s.name for r in body.resource_spans for scope in r.scope_spans for s in scope.spans]
    assert names.count("token") == 19 and "prefill" in names
    scopes = {scope.scope.name for r in body.resource_spans for scope in r.scope_spans}
    assert scopes == {"phasetrace", "phasetrace.phases", "phasetrace.tokens"}


def test_many_spans_go_into_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    from phasetrace.emit import otlp_proto

    monkeypatch.setattr(otlp_proto, "_FULL", 3)
    data = b"".join(to_protobuf(to_spans(generation(tokens=20))))
    body = ExportTraceServiceRequest.FromString(data)
    assert max(len(s.spans) for r in body.resource_spans for s in r.scope_spans) == 3


def test_jaegers_document_has_what_its_interface_needs() -> None:
    document = json.loads(b"".join(to_jaeger(to_spans(generation(tokens=4)))))
    for trace in document["data"]:
        known = {span["spanID"] for span in trace["spans"]}
        for span in trace["spans"]:
            assert span["traceID"] == trace["traceID"] and span["processID"] in trace["processes"]
            assert all(r["spanID"] in known for r in span["references"])
            assert span["duration"] >= 0
            for tag in span["tags"]:
                assert tag["type"] in ("string", "bool", "int64", "float64", "binary")
