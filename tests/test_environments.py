"""The engine environments are what a user has: real engines, and nothing of phasetrace or OpenTelemetry."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ABSENT = """
import importlib.util, sys
names = ("phasetrace", "phasetrace_agent", "opentelemetry")
print([name for name in names if importlib.util.find_spec(name)])
"""

GENERATE = """
import sys
sys.path.insert(0, sys.argv[1])
from small_model import make_model, make_tokenizer
from transformers import __version__, pipeline
tokenizer = make_tokenizer()
model = make_model(tokenizer, hidden=64, layers=2, heads=4, kv_heads=2)
inputs = tokenizer(["How far is the moon?", "Bread."], return_tensors="pt", padding=True)
output = model.generate(**inputs, max_new_tokens=4, min_new_tokens=4, do_sample=False)
assert output.shape[1] == inputs["input_ids"].shape[1] + 4, output.shape
chat = pipeline("text-generation", model=model, tokenizer=tokenizer)
chat([{"role": "user", "content": "How far is the moon?"}], max_new_tokens=4)
print(__version__)
"""


@pytest.mark.slow
def test_each_version_of_transformers_generates_without_phasetrace(
    engine_python: Path, transformers_dir: Path, examples: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(transformers_dir)}

    def run(code: str) -> str:
        command = [str(engine_python), "-c", code, str(examples)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run(ABSENT) == "[]"
    assert transformers_dir.name == f"transformers-{run(GENERATE)}"


def test_examples_know_nothing_of_phasetrace(examples: Path) -> None:
    importing = [
        path.name
        for path in examples.rglob("*.py")
        for line in path.read_text().splitlines()
        if line.lstrip().startswith(("import phasetrace", "from phasetrace"))
    ]
    assert importing == []


def test_other_pythons_are_found(other_pythons: Sequence[tuple[tuple[int, int], Path]]) -> None:
    versions = [version for version, _ in other_pythons]
    assert versions == sorted(set(versions))
    assert (3, 11) in versions or (3, 12) in versions or (3, 13) in versions
