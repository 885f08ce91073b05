"""Launchers that put themselves between us and the application."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.supervise.runs import APP, PYTHON, Runs


def test_uv_run(runs: Runs) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists() and shutil.which("uv") is None:
        pytest.skip("uv is not here: pip install uv")
    program = str(uv) if uv.exists() else "uv"
    for isolation in ([], ["--isolated"]):
        words = [program, "run", "--offline", "--no-project", *isolation, "--python", PYTHON]
        done = runs.run([*words, str(APP), "generate", "2"])
        assert done.returncode == 0, done.stderr
        assert len(runs.recording().requests) == 2


@pytest.mark.slow
def test_torchrun(runs: Runs, engine_python: Path) -> None:
    words = [str(engine_python), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = runs.run([*words, str(APP), "generate", "1"])
    assert done.returncode == 0, done.stderr
    requests = runs.recording().requests
    assert len(requests) == len({request.process for request in requests}) == 2
