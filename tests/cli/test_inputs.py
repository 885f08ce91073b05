"""The progress bar, and strings of a trace on their way through the commands."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from phasetrace.cli import inputs, main
from phasetrace.emit.trace_file import TraceFile
from phasetrace.model import Recording, Sequence

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
