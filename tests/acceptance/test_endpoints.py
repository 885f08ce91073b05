"""Sent while the run goes on, over HTTP and gRPC; an endpoint that is down loses nothing of the file."""

import re
import socket
from pathlib import Path

import pytest

from tests.acceptance.real import Engine, Run, Tour
from tests.emit.receivers import GrpcReceiver, HttpReceiver

pytestmark = pytest.mark.slow
SPANS = 30  # of answers.py: for each of its two requests itself, three phases, and eleven tokens


def assert_whole(run: Run) -> None:
    assert run.done.returncode == 0, run.done.stderr
    assert [r.output_tokens for r in run.recording.requests] == [12, 12]
    assert sum(map(len, run.recording.steps)) == 24


def test_over_http(tour: Tour, tour_receiver: HttpReceiver) -> None:
    (delivered,) = re.findall(r"delivered (\d+) spans to the endpoint", tour.done.stderr)
    assert int(delivered) == len(tour_receiver.spans)
    roots = {s.span_id.hex() for s in tour_receiver.spans}
    assert {r.span_id for r in tour.recording.requests} <= roots


def test_metrics_over_http(tour: Tour, tour_receiver: HttpReceiver) -> None:
    names = {metric.name for metric in tour_receiver.metrics}
    assert {
        "gen_ai.server.request.duration",
        "gen_ai.server.time_to_first_token",
        "gen_ai.server.time_per_output_token",
    } <= names


def test_over_grpc(engine: Engine, tmp_path: Path) -> None:
    receiver = GrpcReceiver()
    run = engine.record(tmp_path, engine.application("answers.py"), "--otlp", receiver.url)
    receiver.stop()
    assert_whole(run)
    assert f"delivered {SPANS} spans to the endpoint" in run.done.stderr
    assert len(receiver.spans) == SPANS
    assert {r.span_id for r in run.recording.requests} <= {s.span_id.hex() for s in receiver.spans}


def test_an_endpoint_that_is_down(engine: Engine, tmp_path: Path) -> None:
    with socket.socket() as nobody:  # bound and not listening: the connection is refused
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        run = engine.record(tmp_path, engine.application("answers.py"), "--otlp", url)
    assert_whole(run)
    assert f"{SPANS} spans were not delivered" in run.done.stderr
    assert "the trace file has them all" in run.done.stderr
    assert "Traceback" not in run.done.stderr
