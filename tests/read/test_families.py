"""Spans of one request by several that saw it: counted once, and its client tells when it was sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.analyze import breakdown
from phasetrace.emit.otlp_json import to_lines
from phasetrace.mapping import to_spans
from phasetrace.model import Phase
from phasetrace.read import read
from tests import builders
from tests.read.made_spans import BEGIN, MS, VLLM, reading, span

__all__ = ["reading"]  # the fixture


@pytest.mark.parametrize("parent", [1, None])
def test_a_clients_span_tells_when_a_request_was_sent(parent: int | None, reading: Any) -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    found = reading(
        span("chat m", -120, 1020, kind=3, attributes=chat),
        span("llm_request", number=2, parent=parent, attributes=VLLM),
    )
    (request,) = found.requests
    assert request.sent_ns == BEGIN - 120 * MS
    (told,) = breakdown(found).requests
    assert told.phase_ns(Phase.CLIENT) == 120 * MS and told.e2e_ns == 1120 * MS
    assert told.ttft_ns == 620 * MS


def test_a_client_whose_clock_disagrees_tells_nothing(reading: Any) -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    (request,) = reading(
        span("chat m", 5000, 6000, kind=3, attributes=chat),
        span("llm_request", number=2, parent=1, attributes=VLLM),
    ).requests
    assert request.sent_ns is None


def test_a_client_around_our_own_request_tells_when_it_was_sent(tmp_path: Path) -> None:
    recorded = builders.recording(builders.request("a", parent_span_id=f"{7:016x}"))
    own = recorded.requests[0]
    client = span("chat m", 0, 1, number=7, kind=3, attributes={"gen_ai.operation.name": "chat"})
    client |= {"traceId": own.trace_id, "startTimeUnixNano": str(own.arrival_ns - 30 * MS)}
    client["endTimeUnixNano"] = str((own.finished_ns or 0) + MS)
    group = {"resourceSpans": [{"scopeSpans": [{"spans": [client]}]}]}
    path = tmp_path / "trace.json"
    path.write_bytes(b"".join(to_lines(to_spans(recorded))) + json.dumps(group).encode() + b"\n")
    (request,) = read(path).requests
    assert request.sent_ns == own.arrival_ns - 30 * MS and request.id == own.id


def test_a_client_whose_server_is_two_spans_below_is_not_counted_twice(reading: Any) -> None:
    """The spans of HTTP in between are not kept: the client is the one that lies around."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    found = reading(
        span("chat", -20, 1020, kind=3, attributes=chat),
        span("chat", 2000, 3000, kind=3, number=2, attributes=chat),
        span("llm_request", number=3, parent=77, attributes=VLLM),
    )
    assert sorted(r.span_id for r in found.requests) == [f"{2:016x}", f"{3:016x}"]


def test_many_requests_of_one_trace_take_no_longer_each(reading: Any) -> None:
    """Each client of thousands has its server below spans that are not in the file."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    clients = [
        span("chat", n * 10, n * 10 + 1005, kind=3, number=n + 1, attributes=chat) for n in range(3000)
    ]
    servers = [
        span("llm_request", n * 10 + 1, n * 10 + 1001, number=n + 5001, parent=99999, attributes=VLLM)
        for n in range(3000)
    ]
    assert {r.engine for r in reading(*clients, *servers).requests} == {"vllm"}
