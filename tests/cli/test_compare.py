"""`phasetrace compare` on real trace files, and one clear line for what cannot be compared."""

import io
import json
import re
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from phasetrace.cli import main
from phasetrace.model import Recording
from tests.analyze.compare.runs import run
from tests.cli.conftest import written

Captured = pytest.CaptureFixture[str]
SCHEMA = json.loads(files("phasetrace.render").joinpath("comparison.schema.json").read_text())


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return written(tmp_path / "before.json", run(knobs={"max_num_seqs": 16}))


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return written(
        tmp_path / "after.json", run(prefill_ms=30, step_ms=15, seed=1, knobs={"max_num_seqs": 64})
    )


def test_text_goes_to_stdout_and_nothing_else_anywhere(before: Path, after: Path, capsys: Captured) -> None:
    assert main(["compare", str(before), str(after), "--goal", "ttft"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("better: TTFT ")
    assert "max_num_seqs" in out and "The same prompts, by length and order: 24 pairs." in out
    assert "\x1b" not in out and not re.search(r" +$", out, re.MULTILINE)
    assert max(map(len, out.splitlines())) <= 80


def test_json_keeps_to_its_schema(before: Path, after: Path, capsys: Captured) -> None:
    assert main(["compare", str(before), str(after), "--goal", "tpot", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(report, SCHEMA)
    assert (report["word"], report["goal"]) == ("worse", "tpot")
    assert [report[side]["name"] for side in ("before", "after")] == ["before.json", "after.json"]
    assert report["set"] == [{"name": "max_num_seqs", "before": 16, "after": 64}]
    differences = sum(phase["difference_s"] for phase in report["phases"])
    assert differences == pytest.approx(report["e2e_difference_s"])
    assert sum(phase["share"] for phase in report["phases"]) == pytest.approx(1)
    (e2e,) = (m for m in report["metrics"] if (m["metric"], m["statistic"]) == ("e2e_s", "mean"))
    assert e2e["after"] - e2e["before"] == pytest.approx(differences)


@pytest.mark.parametrize(
    ("name", "begins"), [("r.json", "{"), ("r.md", "### better: "), ("r.txt", "better: ")]
)
def test_the_ending_of_the_output_says_the_format(
    before: Path, after: Path, name: str, begins: str, capsys: Captured
) -> None:
    output = before.with_name(name)
    assert main(["compare", str(before), str(after), "--goal", "ttft", "-o", str(output)]) == 0
    out, err = capsys.readouterr()
    assert out == "" and err == f"phasetrace: wrote {output}\n"
    assert output.read_text().startswith(begins)


def test_the_goal_is_that_of_before(before: Path, after: Path, capsys: Captured) -> None:
    assert main(["compare", str(before), str(after), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["goal"] == "throughput"  # a loop over prompts


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("worse", 1),
        ("worse=20%", 1),
        ("worse=90%", 0),
        ("ttft", 0),
        ("ttft,tpot", 1),
        ("any", 1),
        ("preemption", 0),
    ],
)
def test_fail_on_sets_the_exit_code_and_still_prints(
    before: Path, after: Path, what: str, code: int, capsys: Captured
) -> None:
    assert main(["compare", str(before), str(after), "--goal", "tpot", "--fail-on", what]) == code
    assert capsys.readouterr().out.startswith("worse: TPOT")


def test_runs_may_differ_by_more(before: Path, after: Path, capsys: Captured) -> None:
    arguments = ["compare", str(before), str(after), "--goal", "tpot", "--format", "json", "--runs-differ"]
    assert main([*arguments, "100%"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["word"], report["runs_differ"]) == ("no difference seen", 1.0)
    for mistake in ("0.1", "-1%", "x%"):
        assert main([*arguments, mistake]) == 2
        assert "as in 10%" in capsys.readouterr().err


def test_one_of_them_may_come_from_stdin(
    before: Path, after: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(after.read_bytes())))
    assert main(["compare", str(before), "-", "--goal", "ttft"]) == 0
    assert capsys.readouterr().out.startswith("better: TTFT ")


def test_a_trace_is_no_worse_than_itself(trace: Path, capsys: Captured) -> None:
    assert main(["compare", str(trace), str(trace), "--fail-on", "any"]) == 0
    assert capsys.readouterr().out.startswith("no difference seen: ")


def test_files_that_are_called_alike_are_told_by_their_paths(before: Path, capsys: Captured) -> None:
    other = before.parent / "other" / before.name
    other.parent.mkdir()
    other.write_bytes(before.read_bytes())
    assert main(["compare", str(before), str(other), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [report[side]["name"] for side in ("before", "after")] == [str(before), str(other)]


def test_a_folder_without_a_name_is_told_as_it_was_given(
    before: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(before.parent)
    assert main(["compare", ".", before.name]) == 0
    assert "\nBEFORE  ., 24 requests" in capsys.readouterr().out


def test_a_table_has_no_noise_to_tell(before: Path, tmp_path: Path, capsys: Captured) -> None:
    table = tmp_path / "table.json"
    table.write_text(json.dumps({"phasetrace": "summary/1", "groups": [{"ttft_s": 1.0}]}))
    for pair in ([before, table], [table, before]):
        assert main(["compare", *map(str, pair)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and "table of numbers" in err


def test_what_holds_no_request_that_ended_is_named(before: Path, tmp_path: Path, capsys: Captured) -> None:
    failed: Recording = run(3, failed=3)
    path = written(tmp_path / "failed.json", failed)
    assert main(["compare", str(before), str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "failed.json" in err


def test_bad_input_is_one_line_and_exit_code_2(before: Path, tmp_path: Path, capsys: Captured) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("hello\n")
    for arguments in ([before, broken], [before, tmp_path / "missing.json"], [before]):
        assert main(["compare", *map(str, arguments)]) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
