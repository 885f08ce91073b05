"""`phasetrace diagnose` on a real trace file, and one clear line for whatever is none."""

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from phasetrace.cli import main

Captured = pytest.CaptureFixture[str]


def test_text_goes_to_stdout_and_nothing_else_anywhere(trace: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(trace)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "prefill" in out and "decode" in out and "TTFT" in out
    assert "\x1b" not in out and not re.search(r" +$", out, re.MULTILINE)


def test_json_keeps_to_its_schema(trace: Path, capsys: Captured) -> None:
    import jsonschema

    from phasetrace.render import json_report

    assert main(["diagnose", str(trace), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(
        report, json.loads(Path(json_report.__file__).with_name("diagnosis.schema.json").read_text())
    )
    assert report["requests"]["total"] == 6
    assert report["engine"] == {"name": "transformers", "version": "5.24.0"}
    assert {p["phase"]: round(p["seconds"], 3) for p in report["phases"] if p["seconds"]} == {
        "prefill": 0.3,
        "decode": 2.418,
    }


def test_stdin(trace: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(trace.read_bytes())))
    assert main(["diagnose", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"]["total"] == 6


def test_several_files_are_one_recording(trace: Path, capsys: Captured) -> None:
    again = trace.with_name("again.json")
    again.write_bytes(trace.read_bytes())
    assert main(["diagnose", str(trace), str(again), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"]["total"] == 6


@pytest.mark.parametrize(
    ("name", "begins"), [("r.json", "{"), ("r.md", "### "), ("r.html", "<!doctype html>"), ("r.txt", "")]
)
def test_the_ending_of_the_output_says_the_format(
    trace: Path, name: str, begins: str, capsys: Captured
) -> None:
    output = trace.with_name(name)
    assert main(["diagnose", str(trace), "-o", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out == "" and err == f"phasetrace: wrote {output}\n"
    assert output.read_text().startswith(begins)


@pytest.mark.parametrize("goal", ["ttft", "tpot", "e2e", "throughput"])
def test_every_goal_has_an_answer(trace: Path, goal: str, capsys: Captured) -> None:
    assert main(["diagnose", str(trace), "--goal", goal, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["goal"] == goal


def test_a_target_that_is_kept_is_healthy(trace: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(trace), "--slo", "ttft=0.5,tpot=0.05", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["cause"] == "healthy"
    assert report["slo"] == {"ttft_s": 0.5, "tpot_s": 0.05}


def test_fail_on_sets_the_exit_code_and_still_prints(trace: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(trace), "--fail-on", "no-kv-cache", "--format", "json"]) == 0
    cause = json.loads(capsys.readouterr().out)["cause"]
    assert main(["diagnose", str(trace), "--fail-on", cause]) == 1
    assert cause in capsys.readouterr().out


def not_json(folder: Path) -> Path:
    return file(folder, "not.json", "hello\n")


def empty(folder: Path) -> Path:
    return file(folder, "empty.json", "")


def half_a_line(folder: Path) -> Path:
    return file(folder, "half.json", '{"resourceSpans": [{"scopeSp')


def other_json(folder: Path) -> Path:
    return file(folder, "other.json", '{"name": "package", "version": 1}')


def no_llm_spans(folder: Path) -> Path:
    span = {
        "traceId": "1" * 32,
        "spanId": "1" * 16,
        "name": "GET /",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    }
    document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "http"}, "spans": [span]}]}]}
    return file(folder, "web.json", json.dumps(document))


def missing(folder: Path) -> Path:
    return folder / "missing.json"


def a_folder(folder: Path) -> Path:
    return folder


def binary(folder: Path) -> Path:
    path = folder / "binary.json"
    path.write_bytes(bytes(range(256)))
    return path


def hostile_name(folder: Path) -> Path:
    return folder / "\x1b[2Jx\ny.json"


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


BAD = [not_json, empty, half_a_line, other_json, no_llm_spans, missing, a_folder, binary, hostile_name]


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
@pytest.mark.parametrize("command", ["diagnose", "show"])
def test_bad_input_is_one_line_and_exit_code_2(make, command: str, tmp_path: Path, capsys: Captured) -> None:  # type: ignore[no-untyped-def]
    path = make(tmp_path)
    assert main([command, str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("phasetrace: ") and err.count("\n") == 1
    assert "\x1b" not in err and "Traceback" not in err
    if make is not hostile_name:
        assert path.name in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--goal", "speed"],
        ["--slo", "fast"],
        ["--format", "yaml"],
        ["--fail-on", "sometimes"],
        ["--nonsense"],
    ],
)
def test_a_bad_option_is_one_line_and_exit_code_2(
    trace: Path, arguments: list[str], capsys: Captured
) -> None:
    assert main(["diagnose", str(trace), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1


def test_without_input_it_says_what_is_missing(capsys: Captured) -> None:
    assert main(["diagnose"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_no_trace_in_a_folder_is_left_out_and_said(trace: Path, capsys: Captured) -> None:
    folder = trace.parent / "mixed"
    folder.mkdir()
    (folder / "run.json").write_bytes(trace.read_bytes())
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "gone.json").symlink_to("nowhere.json")
    (folder / "inner.json").mkdir()
    os.mkfifo(folder / "pipe.json")
    other_json(folder), binary(folder), empty(folder)
    (folder / "picture.png").write_bytes(b"\x89PNG")
    assert main(["diagnose", str(folder), "--format", "json"]) == 0
    said = [entry["defect"] for entry in json.loads(capsys.readouterr().out)["data"]]
    left_out = sorted(sentence for sentence in said if sentence.startswith("left out: "))
    assert [Path(sentence.split()[2]).name for sentence in left_out] == [
        "binary.json",
        "empty.json",
        "other.json",
    ]


def test_a_folder_of_nothing_but_others_is_refused_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    other_json(tmp_path), binary(tmp_path)
    assert main(["diagnose", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "none of 2 files is a trace" in err and "binary.json" in err and err.count("\n") == 1


@pytest.mark.parametrize("place", ["no/such/folder/report.txt", "."])
def test_an_unwritable_output_is_one_line_and_exit_code_2(trace: Path, place: str, capsys: Captured) -> None:
    output = trace.parent / place
    assert main(["diagnose", str(trace), "-o", str(output)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("phasetrace: cannot write ") and err.count("\n") == 1


def test_a_closed_pipe_is_no_error(trace: Path, phasetrace_command: Path) -> None:
    import subprocess

    command = f"{phasetrace_command} diagnose {trace} | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0 and done.stderr == ""
