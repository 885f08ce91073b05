"""64 calls in one application span, and 2,000 tokens in one call: few spans, and no token's time lost."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from phasetrace.mapping.budget import LIMIT
from phasetrace.read import read
from tests.acceptance.applications import CALLS, TOKENS
from tests.acceptance.real import Engine, Run
from tests.emit.receivers import HttpReceiver

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Instrumented:
    """A run under `opentelemetry-instrument`, and what an endpoint got of it."""

    run: Run
    receiver: HttpReceiver


@pytest.fixture(scope="module")
def instrumented(
    engine: Engine, opentelemetry_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Instrumented]:
    receiver = HttpReceiver()
    launcher = [str(engine.python), str(opentelemetry_folder / "bin" / "opentelemetry-instrument")]
    kinds = {f"OTEL_{kind}_EXPORTER": "none" for kind in ("TRACES", "METRICS", "LOGS")}
    run = engine.with_first(opentelemetry_folder).record(
        tmp_path_factory.mktemp("instrumented"),
        [*launcher, *engine.application("spans.py")],
        *("--otlp", receiver.url),
        env=kinds,
    )
    assert run.done.returncode == 0, run.done.stderr
    yield Instrumented(run, receiver)
    receiver.stop()


def test_opentelemetry_instrument_is_recorded(instrumented: Instrumented) -> None:
    run = instrumented.run
    trace, span, kind, _ = run.done.stdout.split()
    assert kind == "_Span"  # the SDK's: their instrumentation is in force, too
    requests = run.recording.requests
    assert len(requests) == CALLS
    assert {(r.trace_id, r.parent_span_id) for r in requests} == {(trace, span)}


def test_64_calls_in_one_span_stay_within_the_budget(instrumented: Instrumented) -> None:
    received = instrumented.receiver.spans
    by_trace = Counter(span.trace_id.hex() for span in received)
    print(f"spans of each trace: {sorted(by_trace.values())}")
    assert max(by_trace.values()) <= LIMIT
    roots = [s for s in received if s.name.startswith("text_completion")]
    assert len(roots) == CALLS
    assert max(spans_in_file(instrumented.run.trace).values()) <= LIMIT


def test_64_calls_in_one_span_lose_no_token_time(instrumented: Instrumented) -> None:
    recording = instrumented.run.recording
    assert sum(len(steps) for steps in recording.steps) == CALLS * TOKENS
    waits = waits_received(instrumented.receiver)
    assert [len(w) for w in waits] == [TOKENS - 1] * CALLS
    in_file = sorted((r.last_token_ns or 0) - (r.first_token_ns or 0) for r in recording.requests)
    assert np.abs(np.array(sorted(map(sum, waits))) * 1000 - in_file).max() <= 1000


def test_2000_tokens_stay_within_the_budget_and_lose_no_time(tour: Run, tour_receiver: HttpReceiver) -> None:
    request = max(tour.recording.requests, key=lambda r: r.output_tokens or 0)
    assert request.output_tokens == 2000
    assert sum(len(s) for s in tour.recording.steps if s.stream == request.stream) == 2000
    by_trace = Counter(span.trace_id.hex() for span in tour_receiver.spans)
    print(f"spans: {by_trace[request.trace_id]}")
    assert 0 < by_trace[request.trace_id] <= LIMIT
    assert max(by_trace.values()) <= LIMIT
    assert max(spans_in_file(tour.trace).values()) <= LIMIT
    waits = waits_received(tour_receiver, request.trace_id)
    assert sum(map(len, waits)) == 1999
    decode = (request.last_token_ns or 0) - (request.first_token_ns or 0)
    assert abs(sum(map(sum, waits)) * 1000 - decode) <= 1000


def waits_received(receiver: HttpReceiver, trace: str | None = None) -> list[list[int]]:
    return [
        [value.int_value for value in pair.value.array_value.values]
        for span in receiver.spans
        if trace in (None, span.trace_id.hex())
        for pair in span.attributes
        if pair.key == "phasetrace.decode.itl"
    ]


def spans_in_file(trace: Path) -> Counter[str]:
    """Spans by trace id, as any reader of OTLP JSON counts them; steps and facts have traces of their own."""
    import orjson

    counted: Counter[str] = Counter()
    for line in trace.read_bytes().splitlines():
        for resource in orjson.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                counted.update(span["traceId"] for span in scope["spans"])
    assert read(trace).requests
    return counted
