"""The progress bar, and strings of a trace on their way through the commands."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from phasetrace.cli import inputs, main
from phasetrace.emit.trace_file import TraceFile
from phasetrace.model import Recording, Sequence
from tests.read import writers

Captured = pytest.CaptureFixture[str]
HOSTILE = "\x1b]0;owned\x07\x1b[2J\r[bold]x[/]\u202e"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_read_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(inputs, "PATIENCE_S", -1)
    with inputs.Progress("trace.json") as progress:
        progress(50, 100)
        progress(100, 100)
    assert "reading trace.json" in stderr.getvalue() and "100%" in stderr.getvalue()


@pytest.mark.parametrize(("patience", "total"), [(60, 100), (-1, None)])
def test_a_short_read_or_one_of_unknown_length_shows_none(
    patience: float, total: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(inputs, "PATIENCE_S", patience)
    with inputs.Progress("trace.json") as progress:
        progress(50, total)
    assert stderr.getvalue() == ""


def test_no_bar_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(inputs, "PATIENCE_S", -1)
    with inputs.Progress("trace.json") as progress:
        progress(50, 100)
    assert stderr.getvalue() == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["diagnose"],
        ["diagnose", "--format", "json"],
        ["diagnose", "--format", "markdown"],
        ["show"],
        ["show", "--list"],
    ],
)
def test_nothing_in_a_trace_is_obeyed(hostile_trace: Path, arguments: list[str], capsys: Captured) -> None:
    assert main([*arguments, str(hostile_trace)]) == 0
    out, err = capsys.readouterr()
    assert not any(c in out + err for c in "\x1b\x07\r\u202e")


@pytest.fixture
def hostile_trace(recorded: Recording, tmp_path: Path) -> Path:
    first = recorded.requests[0]
    evil = replace(
        first,
        id="a" + HOSTILE,
        mode=HOSTILE,
        finish_reason=HOSTILE,
        finished_ns=(first.finished_ns or 0) + 10**10,
        sequences=(Sequence(100, 0, 40, HOSTILE),) * 2,
        settings={HOSTILE: HOSTILE},
    )
    models = {"m": replace(recorded.models["m"], name=HOSTILE, device=HOSTILE)}
    process = replace(recorded.processes[0], engines={"transformers": HOSTILE}, troubles=(HOSTILE,))
    file = TraceFile(tmp_path / "hostile.json")
    file.write(
        replace(recorded, requests=(evil, *recorded.requests[1:]), models=models, processes=(process,))
    )
    file.close()
    return tmp_path / "hostile.json"


def test_a_folder_is_read_as_one(recorded: Recording, tmp_path: Path) -> None:
    halves = recorded.requests[:1], recorded.requests[1:]
    for name, requests in zip(("b.json", "a.jsonl"), halves, strict=True):
        file = TraceFile(tmp_path / name)
        file.write(replace(recorded, requests=requests))
        file.close()
    (tmp_path / "notes.txt").write_text("not a trace")
    (tmp_path / "engine.config.json").write_text("{}")
    found = inputs.read([str(tmp_path)])
    assert {r.id for r in found.requests} == {r.id for r in recorded.requests}


def test_a_folder_without_traces_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "folder without a trace" in err and err.count("\n") == 1


def test_a_client_and_its_server_in_two_files_are_one_request(tmp_path: Path) -> None:
    made = writers.spans(count=1)
    client = json.loads(json.dumps(writers.otlp(made[:1])).replace('"kind": 2', '"kind": 3'))
    span = client["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span |= {"name": "chat", "spanId": "c" * 16, "parentSpanId": ""}
    server = writers.otlp(made[:1])
    server["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["parentSpanId"] = "c" * 16
    for name, document in (("client.json", client), ("server.json", server)):
        (tmp_path / name).write_text(json.dumps(document))
    found = inputs.read([str(tmp_path / "client.json"), str(tmp_path / "server.json")])
    assert [r.span_id for r in found.requests] == [writers.span_id(made[0])]


def test_a_file_without_requests_beside_one_with_them(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"resourceSpans":[]}')
    (tmp_path / "b.json").write_text(json.dumps(writers.otlp(writers.spans())))
    assert len(inputs.read([str(tmp_path / "a.json"), str(tmp_path / "b.json")]).requests) == 3


@pytest.mark.parametrize("command", [["diagnose"], ["show"], ["export", "--to", "jaeger"]])
def test_without_an_input_it_is_what_the_last_run_wrote_here(
    command: list[str], trace: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert main([command[0], str(trace), *command[1:]]) == 0
    named = capsys.readouterr().out
    monkeypatch.chdir(trace.parent)
    assert main(command) == 0
    assert capsys.readouterr().out == named
    trace.unlink()
    assert main(command) == 2
    assert "trace.json does not exist; `phasetrace run -- COMMAND`" in capsys.readouterr().err
