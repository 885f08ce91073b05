"""What one step costs in vLLM's engine core: our hooks around a real scheduler's real objects."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench_recorder import EACH_US, FIXED_US
from benchmarks.figure import Figure, figure

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / ".engines/vllm/bin/python"
SCHEDULER = Path(__file__).with_name("vllm_scheduler.py")
MODEL = ["--hidden", "128", "--layers", "1", "--heads", "4", "--kv-heads", "2", "--context", "512"]
ENVIRONMENT = {
    "PYTHONPATH": str(ROOT / "integrations"),
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def measure(quick: bool = False) -> Iterator[Figure]:
    """A figure a batch size; none where vLLM is not set up."""
    if not PYTHON.exists():
        print("  skipped: `make engines-vllm` sets up what this measures")
        return
    environment = {**os.environ, **ENVIRONMENT}
    with tempfile.TemporaryDirectory() as folder:
        model, spool = f"{folder}/model", f"{folder}/spool"
        make = [PYTHON, ROOT / "examples/small_model.py", model, *MODEL]
        subprocess.run(make, env=environment, check=True, capture_output=True)
        command = [PYTHON, SCHEDULER, model, spool, *(("3", "500") if quick else ("25", "4000"))]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    for sequences, found in json.loads(done.stdout.splitlines()[-1]).items():
        budget = FIXED_US + EACH_US * int(sequences)
        for how, times in found.items():
            yield figure(f"vLLM: all hooks of a step, {sequences} sequences, {how}", times, "us", budget)
