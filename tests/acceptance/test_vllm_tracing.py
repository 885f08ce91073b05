"""With vLLM's own tracing on, its spans and the recorded ones make one trace a request, with one root.

Two API servers take the requests, each a process of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.acceptance.real import PATIENCE_S, Engine
from tests.acceptance.streaming_client import Watched, ask
from tests.acceptance.vllm_server import Server, recorded_server
from tests.emit.receivers import HttpReceiver

pytestmark = pytest.mark.slow

CLIENTS = range(1, 61)
OF_VLLM = "llm_request"


def trace_of(number: int) -> str:
    return f"{number:032x}"


async def all_clients(server: Server) -> dict[int, Watched]:
    """Clients at once, each with a span of its own; and one that has none."""

    async def client(number: int) -> Watched:
        body = {"model": server.model, "prompt": "The river", "max_tokens": 5 + number % 11}
        body |= {"temperature": 0, "ignore_eos": True, "stream": number % 2 == 0}
        traceparent = f"00-{trace_of(number)}-{number:016x}-01" if number in CLIENTS else None
        return await ask(server.port, "/v1/completions", body, traceparent)

    numbers = [0, *CLIENTS]
    answers = await asyncio.gather(*(client(number) for number in numbers))
    return dict(zip(numbers, answers, strict=True))


@pytest.fixture(scope="module")
def traces(vllm: Engine, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Span]]:
    """What a receiver got of both, by trace id; only traces in which there is a request of vLLM's."""
    receiver = HttpReceiver()
    options = ["--max-model-len", "512", "--otlp-traces-endpoint", receiver.url + "/v1/traces"]
    protocol = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    recording = ["--otlp", receiver.url]
    folder = tmp_path_factory.mktemp("traced")
    with recorded_server(vllm, folder, tiny_model, options, protocol, recording, servers=2) as server:
        answers = asyncio.run(all_clients(server))
        assert {answer.status for answer in answers.values()} == {200}
        end = time.monotonic() + PATIENCE_S
        while sum(s.name == OF_VLLM for s in receiver.spans) < len(answers) and time.monotonic() < end:
            time.sleep(0.2)
    receiver.stop()
    assert server.run is not None
    roles = Counter(process.facts.get("role") for process in server.run.recording.processes)
    assert roles["API server"] == 2
    found: dict[str, list[Span]] = defaultdict(list)
    for span in receiver.spans:
        found[span.trace_id.hex()].append(span)
    return {trace: spans for trace, spans in found.items() if any(s.name == OF_VLLM for s in spans)}


def test_each_client_has_a_trace_and_no_span_is_there_twice(traces: dict[str, list[Span]]) -> None:
    assert len(traces) == len(CLIENTS) + 1
    for spans in traces.values():
        assert max(Counter(span.span_id for span in spans).values()) == 1
        names = Counter(span.name.split()[0] for span in spans)
        assert (names[OF_VLLM], names["text_completion"]) == (1, 1)


def test_no_clients_are_mixed_up(traces: dict[str, list[Span]]) -> None:
    for number in CLIENTS:
        spans = {span.name.split()[0]: span for span in traces[trace_of(number)]}
        ours = spans["text_completion"]
        assert ours.parent_span_id.hex() == spans[OF_VLLM].parent_span_id.hex() == f"{number:016x}"
        (tokens,) = (a.value.int_value for a in ours.attributes if a.key == "gen_ai.usage.output_tokens")
        assert tokens == 5 + number % 11


def test_where_no_client_has_a_span_vllms_is_a_child_of_the_recorded_one(
    traces: dict[str, list[Span]],
) -> None:
    (alone,) = (spans for trace, spans in traces.items() if trace not in set(map(trace_of, CLIENTS)))
    (root,) = (span for span in alone if not span.parent_span_id)
    (of_vllm,) = (span for span in alone if span.name == OF_VLLM)
    assert root.name.startswith("text_completion")
    assert of_vllm.parent_span_id == root.span_id
