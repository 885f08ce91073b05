"""Spans go to the endpoint as well; what becomes of them there never matters to the file."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from phasetrace.model import Recording
from phasetrace.read import read
from phasetrace.supervise.outlets import Outlets
from phasetrace.supervise.trace import Trace
from tests import builders
from tests.supervise.runs import Runs, app


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes whatever is sent."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[http.server.HTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.paths = []  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_are_delivered_while_the_file_has_them_too(
    runs: Runs, receiver: http.server.HTTPServer
) -> None:
    done = runs.run(app("generate", 2), "--otlp", f"http://127.0.0.1:{receiver.server_port}")
    assert done.returncode == 0
    assert "/v1/traces" in receiver.paths  # type: ignore[attr-defined]
    assert "delivered" in done.stderr
    assert "not delivered" not in done.stderr
    assert len(runs.recording().requests) == 2


def test_endpoint_that_is_down_is_said_and_costs_nothing(runs: Runs) -> None:
    done = runs.run(app("generate", 2), "--otlp", "http://127.0.0.1:9")
    assert done.returncode == 0
    assert "spans were not delivered" in done.stderr
    assert len(runs.recording().requests) == 2


def test_endpoint_of_the_run_is_not_in_the_applications_environment(runs: Runs) -> None:
    done = runs.run(["env"], "--otlp", "http://127.0.0.1:9")
    assert "127.0.0.1:9" not in done.stdout


def test_certificate_that_is_not_there_does_not_end_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(tmp_path / "missing.pem"))
    trace = Trace(tmp_path / "trace.json", tmp_path / "rest.json", "auto", begun=lambda: None)
    outlets = Outlets(trace, "grpcs://127.0.0.1:9", "auto")
    outlets.write(Recording(requests=(builders.request(),)))
    outlets.close()
    assert len(read(tmp_path / "trace.json").requests) == 1
