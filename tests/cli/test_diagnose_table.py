"""`phasetrace diagnose` on a table of numbers, through the command line."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from phasetrace.cli import main
from phasetrace.render import json_report

Captured = pytest.CaptureFixture[str]

WORKED = {"requests": 1, "concurrency": 1, "prompt_tokens": 6000, "output_tokens": 1200}
WORKED_TIMES = {"queue_s": 0.4, "prefill_s": 1.1, "decode_s": 28.5, "e2e_s": 30.0}


@pytest.fixture
def worked(tmp_path: Path) -> Path:
    return written(tmp_path, {"goal": "e2e", "groups": [{**WORKED, **WORKED_TIMES}]})


def written(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "case.json"
    path.write_text(json.dumps({"phasetrace": "summary/1", **document}))
    return path


def report(capsys: Captured, *arguments: str) -> dict[str, Any]:
    assert main(["diagnose", *arguments, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    schema = json.loads(Path(json_report.__file__).with_name("diagnosis.schema.json").read_text())
    jsonschema.validate(found, schema)
    return found


def test_the_worked_example_is_told_right(worked: Path, capsys: Captured) -> None:
    found = report(capsys, str(worked), "--slo", "e2e=10")
    first = found["findings"][0]
    said = " ".join(first["evidence"])
    assert found["cause"] == "long-output"
    assert "95 %" in said  # decode owns it
    assert "half as long would save about 550 ms" in said  # the prompt does not matter
    assert "320 tokens at the same rate give 9.1" in said
    assert "bounds the slowest" in said  # the cap and the tail
    assert "first token after 1.5 s" in said  # streaming
    assert first["prediction"]["after"] == pytest.approx(9.1, abs=0.05)
    assert first["prediction"]["ratio"] == pytest.approx(3.3, abs=0.05)


def test_text_shows_phases_and_the_fix(worked: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(worked)]) == 0
    out = capsys.readouterr().out
    assert "long-output" in out and "decode" in out and "28.5 s" in out and "95 %" in out
    assert "nan" not in out


def test_markdown_is_written(worked: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(worked), "--format", "markdown"]) == 0
    assert "long-output" in capsys.readouterr().out


def test_contradictions_are_refused(tmp_path: Path, capsys: Captured) -> None:
    found = report(capsys, str(written(tmp_path, {"groups": [{"prefill_s": 3.2, "e2e_s": 2.4}]})))
    assert found["cause"] == "data-defect"
    assert found["phases"] == [] and "prefill_s" in found["data"][0]["defect"]


def test_too_little_is_unknown_and_says_what_to_measure(tmp_path: Path, capsys: Captured) -> None:
    found = report(capsys, str(written(tmp_path, {"goal": "ttft", "groups": [{"ttft_s": 5.9}]})))
    assert found["cause"] == "unknown"
    assert "queue_s" in found["findings"][0]["recommendation"]


def test_a_wrong_key_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(written(tmp_path, {"groups": [{"tpot": 1}]}))]) == 2
    err = capsys.readouterr().err
    assert "groups[0].tpot" in err and len(err.strip().splitlines()) == 1


def test_a_table_goes_with_nothing_else(worked: Path, capsys: Captured) -> None:
    assert main(["diagnose", str(worked), str(worked)]) == 2
    assert "by itself" in capsys.readouterr().err


def test_show_says_that_a_table_has_no_requests(worked: Path, capsys: Captured) -> None:
    assert main(["show", str(worked)]) == 2
    assert "only `diagnose` takes one" in capsys.readouterr().err
