"""`phasetrace bench`: with a Python that pretends, and with a real engine."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from phasetrace.cli import main
from phasetrace.model import Ceilings
from phasetrace.supervise import bench

Captured = pytest.CaptureFixture[str]

LINES = [
    {"progress": "memory bandwidth"},
    {"what": "machine", "device": "cpu", "name": "cpu", "threads": 2, "dtype": "float32"}
    | {"bandwidth_bytes_s": 10e9, "flops_s": 100e9},
    {"what": "model", "name": "m", "parameters": 10_000_000, "weight_bytes": 40_000_000, "layers": 4}
    | {"kv_heads": 8, "head_dim": 64, "hidden_size": 512},
    {"what": "prefill", "tokens": 100, "seconds": 0.04},
    {"what": "decode", "batch": 1, "context": 70, "seconds": 0.005},
    {"what": "decode", "batch": 2, "context": 70, "seconds": 0.0055},
    {"what": "seed", "tokens": 64, "read_s": 0.02, "written_s": 0.4},
]


def pretending(folder: Path, lines: list[dict[str, object]]) -> Path:
    """A program that prints these lines instead of measuring."""
    script = folder / "python"
    said = "\n".join(map(json.dumps, lines))
    script.write_text(f"#!/bin/sh\ncat <<'END'\na library's banner\n{said}\nEND\n")
    script.chmod(0o755)
    return script


def test_the_report_and_the_ceilings(tmp_path: Path, capsys: Captured) -> None:
    assert main(["bench", "--python", str(pretending(tmp_path, LINES))]) == 0
    out, err = capsys.readouterr()
    assert "10.0 GB/s" in out and "100 GFLOP/s" in out and "20x as long" in out
    assert "a second sequence adds 500 µs" in out
    assert "memory bandwidth" in err and "banner" not in out
    kept = bench.kept("cpu")
    assert (
        kept is not None and kept.bandwidth_bytes_s == 10e9 and kept.source.startswith("phasetrace bench, ")
    )
    assert bench.kept("cuda") is None


def test_nothing_is_kept_unasked(tmp_path: Path) -> None:
    assert main(["bench", "--no-keep", "--python", str(pretending(tmp_path, LINES))]) == 0
    assert bench.kept("cpu") is None


def test_a_python_without_torch_is_one_line(tmp_path: Path, capsys: Captured) -> None:
    script = pretending(tmp_path, [{"error": "this Python has no torch; name one that has with --python"}])
    assert main(["bench", "--python", str(script)]) == 2
    assert "no torch" in capsys.readouterr().err
    assert main(["bench", "--python", str(tmp_path / "none")]) == 2
    assert "cannot be started" in capsys.readouterr().err


def test_damaged_ceilings_are_as_none() -> None:
    bench.kept_in().parent.mkdir(parents=True)
    bench.kept_in().write_text('{"cpu": 3}')
    assert bench.kept("cpu") is None
    bench.kept_in().write_text("[")
    assert bench.kept("cpu") is None


def diagnosed(trace: Path, capsys: Captured, *options: str) -> Any:
    assert main(["diagnose", str(trace), "--format", "json", *options]) == 0
    return json.loads(capsys.readouterr().out)["ceilings"]


def test_kept_ceilings_are_used_only_where_asked_for_and_the_report_says_it(
    trace: Path, tmp_path: Path, capsys: Captured
) -> None:
    bench.keep("cpu:0", Ceilings(10e9, 100e9))
    assert diagnosed(trace, capsys) is None  # it may be of another machine
    used = diagnosed(trace, capsys, "--ceilings", "kept")
    assert used["bandwidth_bytes_s"] == 10e9 and str(bench.kept_in()) in used["source"]
    other = bench.kept_in().rename(tmp_path / "other.json")
    assert diagnosed(trace, capsys, "--ceilings", str(other))["source"] == f"phasetrace bench, {other}"
    assert main(["diagnose", str(trace), "--ceilings", str(other)]) == 0
    assert "ceilings 10.0 GB/s, 0.100 TFLOP/s" in capsys.readouterr().out
    assert main(["diagnose", str(trace), "--ceilings", "kept"]) == 2
    assert "no ceilings of a device cpu" in capsys.readouterr().err


@pytest.mark.slow
def test_a_real_engine_is_measured(
    engine_python: Path, current_transformers_dir: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.fspath(current_transformers_dir))
    small = ["--quick", "--layers", "1", "--hidden-size", "64", "--device", "cpu"]
    assert main(["bench", "--python", str(engine_python), *small]) == 0
    out = capsys.readouterr().out
    assert "tokens read" in out and "at a time" in out and "as long" in out
