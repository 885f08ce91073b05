"""Spans arrive at real receivers, and what does not arrive is counted to the last one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from phasetrace.emit import endpoint as module
from phasetrace.emit.backlog import Part
from phasetrace.emit.endpoint import Endpoint
from phasetrace.mapping import SpanMaker
from phasetrace.model import Recording, RequestStatus, Samples, Usage
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import Metric
from tests.builders import EPOCH, PROCESS, generation, recording, request, steps
from tests.emit.receivers import GrpcReceiver, HttpReceiver, Received
from tests.supervise.runs import until

Make = Callable[..., Any]
SPANS = (
    3 + 7
)  # of a generation of 8 tokens: request, prefill, decode, and a token span for each but the first


@pytest.fixture(params=[HttpReceiver, GrpcReceiver], ids=["http", "grpc"])
def receiver(request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[Any] = []

    def make(**answers: Any) -> Any:
        made.append(request.param(**answers))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def http() -> Iterator[Make]:
    made: list[HttpReceiver] = []

    def make(**answers: Any) -> HttpReceiver:
        made.append(HttpReceiver(**answers))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def opened(url: str | None) -> Endpoint:
    endpoint = Endpoint.from_environment(url)
    assert endpoint is not None
    return endpoint


def sent(url: str | None, *parts: Recording) -> module.Delivery:
    endpoint = opened(url)
    for part in parts:
        endpoint.send(part)
    return endpoint.close()


def test_all_spans_arrive(receiver: Make) -> None:
    taker: Received = receiver()
    delivery = sent(taker.url, generation())  # type: ignore[attr-defined]
    assert (delivery.delivered, delivery.undelivered, delivery.error) == (SPANS, 0, None)
    assert len(taker.spans) == SPANS
    root = next(span for span in taker.spans if span.name == "text_completion tiny")
    made = [s for g in SpanMaker(for_file=False).spans(generation()) for s in g.spans][0]
    assert root.trace_id.hex() == made.trace_id and root.span_id.hex() == made.span_id
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (made.start_ns, made.end_ns)
    assert taker.resources[0]["service.name"] == "app"
    tokens = [span for span in taker.spans if span.name == "token"]
    decode = next(span for span in taker.spans if span.name == "decode")
    assert {t.parent_span_id for t in tokens} == {decode.span_id}


def test_steps_and_facts_stay_in_the_file(receiver: Make) -> None:
    taker = receiver()
    sent(taker.url, generation())
    assert not any(span.name.startswith("phasetrace.") for span in taker.spans)


def test_the_wait_for_each_token_travels_as_an_array(receiver: Make) -> None:
    taker = receiver()
    sent(taker.url, generation(tokens=2000))
    waits = [
        [v.int_value for v in pair.value.array_value.values]
        for span in taker.spans
        for pair in span.attributes
        if pair.key == "phasetrace.decode.itl"
    ]
    assert [len(w) for w in waits] == [1024, 975] and set(sum(waits, [])) == {10_000}
    assert len(taker.spans) <= 1000


def test_a_receiver_that_fails_at_first_is_tried_again(http: Make) -> None:
    taker = http(fail_first=2)
    assert sent(taker.url, generation()).delivered == SPANS
    assert taker.requests == 3


@pytest.mark.parametrize("status", [400, 401, 404, 413])
def test_a_refusal_is_final_and_said(http: Make, status: int) -> None:
    taker = http(status=status)
    delivery = sent(taker.url, generation(), generation(name="r2", stream=2))
    assert (delivery.delivered, delivery.undelivered) == (0, 2 * SPANS)
    assert delivery.error is not None and str(status) in delivery.error


def test_a_grpc_refusal_is_final_and_said() -> None:
    taker = GrpcReceiver(status=grpc.StatusCode.PERMISSION_DENIED)
    delivery = sent(taker.url, generation())
    taker.stop()
    assert (delivery.delivered, delivery.undelivered) == (0, SPANS)
    assert delivery.error is not None and "PERMISSION_DENIED" in delivery.error


def test_spans_that_the_receiver_rejects_are_counted(receiver: Make) -> None:
    taker = receiver(reject=4)
    delivery = sent(taker.url, generation())
    assert (delivery.delivered, delivery.undelivered, delivery.error) == (SPANS - 4, 4, "too many spans")


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_nobody_listens(scheme: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
    endpoint = opened(url)
    endpoint.send(generation())
    delivery = endpoint.close(patience_s=1.0)
    assert (delivery.delivered, delivery.undelivered) == (0, SPANS)
    assert delivery.error == "connection refused"


def test_an_exporter_that_gives_up_is_told_by_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")  # one more attempt, after about a second
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    endpoint = opened(url)
    endpoint.send(generation())
    assert endpoint.close(patience_s=20.0).error == "connection refused"


def test_a_slow_receiver_holds_nobody_up(receiver: Make) -> None:
    taker = receiver(slow=True)
    endpoint = opened(taker.url)
    for n in range(20):
        endpoint.send(generation(name=f"r{n}", stream=n))
    assert taker.spans == []  # sent without waiting for any answer
    delivery = endpoint.close(patience_s=0.2)
    assert (delivery.delivered, delivery.undelivered) == (0, 20 * SPANS)
    assert delivery.error == "no answer in time"


def test_what_waits_is_bounded_and_the_oldest_is_dropped(
    receiver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Part(list(SpanMaker(for_file=False).spans(generation())))
    monkeypatch.setattr(module, "MOST_WAITING", 3 * one.nbytes)
    taker = receiver(slow=True)
    endpoint = opened(taker.url)
    endpoint.send(generation(name="r0", stream=0))
    until(lambda: taker.requests)
    for n in range(1, 50):
        endpoint.send(generation(name=f"r{n}", stream=n))
    taker.hold.set()
    delivery = endpoint.close()
    assert (delivery.delivered, delivery.undelivered) == (3 * SPANS, 47 * SPANS)
    assert len(taker.spans) == delivery.delivered
    assert delivery.error == "the endpoint is too slow"
    arrived = [pair.value.string_value for s in taker.spans for pair in s.attributes if pair.key == A.ID]
    assert arrived == ["r0", "r48", "r49"]  # the first was on its way


def test_requests_whose_spans_were_dropped_are_in_the_metrics(
    receiver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 1)
    taker = receiver(slow=True)
    endpoint = opened(taker.url)
    for n in range(20):
        endpoint.send(generation(name=f"r{n}", stream=n))
    taker.hold.set()
    assert endpoint.close().undelivered
    found = {metric.name: metric for metric in taker.metrics}
    duration = found["gen_ai.server.request.duration"].histogram.data_points
    assert sum(point.count for point in duration) == 20


def test_what_makes_no_spans_does_not_wait(receiver: Make) -> None:
    taker = receiver(slow=True)
    endpoint = opened(taker.url)
    endpoint.send(generation())
    until(lambda: taker.requests)
    times = np.array([EPOCH])
    endpoint.send(Recording(samples=(Samples(PROCESS, None, times, {Usage.CPU: np.array([1])}),)))
    waits = weakref.ref(times)
    del times
    assert waits() is None
    taker.hold.set()
    assert endpoint.close().undelivered == 0


def test_many_spans_go_in_requests_that_receivers_accept(receiver: Make) -> None:
    taker = receiver()
    delivery = sent(taker.url, *(generation(tokens=600, name=f"r{n}", stream=n) for n in range(8)))
    assert delivery.undelivered == 0 and len(taker.spans) == delivery.delivered
    assert taker.requests >= 8


def test_the_environment_decides(http: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    taker = http()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", taker.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=search")
    assert sent(None, generation()).delivered == SPANS
    assert taker.headers[0]["x-key"] == "secret" and taker.headers[0]["content-encoding"] == "gzip"
    assert taker.resources[0]["service.name"] == "shop" and taker.resources[0]["team"] == "search"


def test_the_environments_protocol_headers_and_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    taker = GrpcReceiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", taker.url.replace("grpc", "http"))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    assert sent(None, generation()).delivered == SPANS
    taker.stop()
    assert taker.headers[0]["x-key"] == "secret"


def test_no_endpoint_where_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Endpoint.from_environment(None) is None
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert Endpoint.from_environment(None) is None


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls(http: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    taker = http(certificate=(certificate, key))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(certificate))
    assert sent(taker.url, generation()).delivered == SPANS


def test_nothing_is_logged_to_the_terminal(http: Make, capfd: pytest.CaptureFixture[str]) -> None:
    taker = http(status=400)
    sent(taker.url, generation())
    out, err = capfd.readouterr()
    assert out == err == ""


def test_server_histograms_with_the_conventions_buckets(receiver: Make) -> None:
    taker = receiver()
    taken = steps(5)
    fine = request(steps=taken)
    broken = request("r2", status=RequestStatus.FAILED, error_type="KeyError")
    cut = request("r3", status=RequestStatus.CUT_OFF, finished_ns=None)
    sent(taker.url, recording(fine, broken, cut, steps=[taken]))
    found = {metric.name: metric for metric in taker.metrics}
    duration = found["gen_ai.server.request.duration"].histogram.data_points
    ttft = found["gen_ai.server.time_to_first_token"].histogram.data_points
    tpot = found["gen_ai.server.time_per_output_token"].histogram.data_points
    assert sum(point.count for point in duration) == 2
    assert sorted(p.value.string_value for d in duration for p in d.attributes if p.key == "error.type") == [
        "KeyError"
    ]
    assert [round(p.sum, 6) for p in ttft] == [0.01] and [round(p.sum, 6) for p in tpot] == [0.01]
    assert list(duration[0].explicit_bounds)[:3] == [0.01, 0.02, 0.04]
    assert list(tpot[0].explicit_bounds)[-2:] == [1.0, 2.5]
    assert {name: metric.unit for name, metric in found.items()} == {
        m.value: m.unit for m in Metric if m.value in found
    }


def test_the_global_meter_provider_is_left_alone(http: Make) -> None:
    from opentelemetry import metrics, trace

    before = (metrics.get_meter_provider(), trace.get_tracer_provider())
    sent(http().url, generation())
    assert (metrics.get_meter_provider(), trace.get_tracer_provider()) == before
