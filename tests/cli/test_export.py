"""`phasetrace export` writes what the other commands read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phasetrace.cli import main
from phasetrace.emit.otlp_json import to_lines
from phasetrace.mapping import to_spans
from phasetrace.read import read
from tests.builders import generation
from tests.emit.receivers import HttpReceiver
from tests.read import writers

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


def test_to_stdout(foreign: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["export", str(foreign), "--to", "perfetto"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["traceEvents"]


def test_to_an_endpoint(tmp_path: Path, capsys: Captured) -> None:
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


def test_an_endpoint_takes_nothing_else(foreign: Path, capsys: Captured) -> None:
    assert main(["export", str(foreign), "--to", "jaeger", "-o", "http://127.0.0.1:1"]) == 2
    assert "takes --to otlp" in capsys.readouterr().err


def test_mistakes_are_one_line(foreign: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["export", str(foreign), "--to", "jaeger", "-o", str(tmp_path / "no" / "where")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["export", str(foreign), "--to", "parquet"]) == 2
    assert "parquet" in capsys.readouterr().err
