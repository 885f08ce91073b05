"""`phasetrace export` writes what the other commands read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from phasetrace.cli import main
from phasetrace.emit.otlp_json import to_lines
from phasetrace.mapping import to_spans
from phasetrace.model import RequestStatus
from phasetrace.read import read
from tests.builders import generation
from tests.emit.receivers import GrpcReceiver, HttpReceiver
from tests.read import writers

US = 1000
NO_TRACE = (".md", ".log")  # a log states an engine's configuration
MADE = sorted(p for p in Path(writers.__file__).with_name("made").iterdir() if p.suffix not in NO_TRACE)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(writers.jaeger(writers.spans())))
    return path


@pytest.mark.parametrize("form", ["otlp", "otlp-proto", "jaeger"])
def test_a_trace_of_others_keeps_its_requests(form: str, foreign: Path, tmp_path: Path) -> None:
    assert main(["export", str(foreign), "--to", form, "-o", str(tmp_path / "out")]) == 0
    found, given = read(tmp_path / "out"), read(foreign)
    assert found.requests == given.requests and found.source == given.source


@pytest.mark.parametrize("form", ["otlp", "otlp-proto", "jaeger"])
@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_what_real_tools_wrote_is_written_and_read_back_equal(path: Path, form: str, tmp_path: Path) -> None:
    assert main(["export", str(path), "--to", form, "-o", str(tmp_path / "out")]) == 0
    found, given = read(tmp_path / "out"), read(path)
    kept = US if form == "jaeger" else 1  # Jaeger's times of spans are whole microseconds
    assert [replace(r, arrival_ns=r.arrival_ns // kept) for r in found.requests] == [
        replace(r, arrival_ns=r.arrival_ns // kept) for r in given.requests
    ]
    assert (found.defects, found.processes) == (given.defects, given.processes)


@pytest.mark.parametrize("output", [[], ["-o", "-"]])
def test_to_stdout(output: list[str], foreign: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", str(foreign), "--to", "perfetto", *output]) == 0
    assert json.loads(capsysbinary.readouterr().out)["traceEvents"]


def test_to_an_endpoint(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("phasetrace.emit.endpoint.MOST_WAITING", 1)  # of a run's spans; here all wait
    recorded = tmp_path / "trace.json"
    recorded.write_bytes(b"".join(to_lines(to_spans(generation(tokens=4)))))
    receiver = HttpReceiver()
    try:
        assert main(["export", str(recorded), "--to", "otlp", "-o", receiver.url]) == 0
    finally:
        receiver.stop()
    names = [span.name for span in receiver.spans]
    assert names == ["text_completion tiny", "prefill", "decode", *["token"] * 3]
    assert f"delivered 6 spans to {receiver.url}" in capsys.readouterr().err
    assert main(["export", str(recorded), "--to", "otlp", "-o", receiver.url]) == 2
    assert "6 spans were not delivered" in capsys.readouterr().err


def test_an_address_without_a_scheme(tmp_path: Path, capsys: Captured) -> None:
    recorded = tmp_path / "trace.json"
    recorded.write_bytes(b"".join(to_lines(to_spans(generation(tokens=4)))))
    receiver = HttpReceiver()
    try:
        host_and_port = receiver.url.removeprefix("http://")
        assert main(["export", str(recorded), "--to", "otlp", "-o", host_and_port]) == 0
    finally:
        receiver.stop()
    assert len(receiver.spans) == 6


@pytest.mark.parametrize(
    "url", ["htp://localhost:4318", "localhost:99999", "http://", "unix:///run/otel.sock"]
)
def test_an_address_that_is_none_is_told_before_anything_is_read(url: str, capsys: Captured) -> None:
    assert main(["export", "there-is-none.json", "--to", "otlp", "-o", url]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{url} is no address of an endpoint; give one like" in line


def test_an_endpoint_takes_nothing_else(foreign: Path, capsys: Captured) -> None:
    assert main(["export", str(foreign), "--to", "jaeger", "-o", "http://127.0.0.1:1"]) == 2
    assert "takes --to otlp" in capsys.readouterr().err


HOSTILE = "<script>alert(1)</script>\x1b]0;x\x07\x1b[31m\u202eevil\u2066\"'&\\ " + "x" * 1_000_000


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Requests whose every text is HOSTILE."""
    found = generation(tokens=20, name="r", external_id=HOSTILE, finish_reason=HOSTILE, engine=HOSTILE)
    failed = replace(found.requests[0], id="f", span_id="f" * 16, trace_id="f" * 32)
    failed = replace(failed, status=RequestStatus.FAILED, error_type=HOSTILE)
    models = {"m": replace(found.models["m"], name=HOSTILE)}
    processes = (replace(found.processes[0], script=HOSTILE, executable=HOSTILE),)
    whole = replace(found, requests=(*found.requests, failed), models=models, processes=processes)
    path = tmp_path / "hostile.json"
    path.write_bytes(b"".join(to_lines(to_spans(whole))))
    return path


@pytest.mark.parametrize("form", ["otlp", "otlp-proto", "jaeger"])
def test_a_hostile_trace_comes_back_as_it_was(form: str, hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["export", str(hostile), "--to", form, "-o", str(out)]) == 0
    assert out.stat().st_size < 1.1 * hostile.stat().st_size
    assert read(out).requests == read(hostile).requests


def test_a_hostile_trace_is_cut_where_it_is_only_looked_at(hostile: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["export", str(hostile), "--to", "perfetto", "-o", str(out)]) == 0
    assert out.stat().st_size < 50_000 and json.loads(out.read_bytes())["traceEvents"]


def test_a_hostile_trace_goes_to_an_endpoint_in_bodies_that_receivers_take(hostile: Path) -> None:
    receiver = GrpcReceiver()  # takes 4 MiB at once
    try:
        assert main(["export", str(hostile), "--to", "otlp", "-o", receiver.url]) == 0
    finally:
        receiver.stop()
    assert len(receiver.spans) > 40
    assert max(span.ByteSize() for span in receiver.spans) < 100_000


def test_mistakes_are_one_line(foreign: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["export", str(foreign), "--to", "jaeger", "-o", str(tmp_path / "no" / "where")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["export", str(foreign), "--to", "parquet"]) == 2
    assert "parquet" in capsys.readouterr().err
