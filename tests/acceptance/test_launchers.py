"""The real engine behind what users start their applications with, none of which has phasetrace."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from phasetrace.model import RequestStatus
from tests.acceptance.real import Engine, Run

pytestmark = pytest.mark.slow
REQUESTS = 2
TOKENS = 12


def assert_recorded(run: Run, processes: int = 1) -> None:
    assert run.done.returncode == 0, run.done.stderr
    requests = run.recording.requests
    assert [r.status for r in requests] == [RequestStatus.OK] * REQUESTS * processes
    assert [r.output_tokens for r in requests] == [TOKENS] * REQUESTS * processes
    assert sum(len(steps) for steps in run.recording.steps) == REQUESTS * TOKENS * processes
    assert len({r.process for r in requests}) == processes


def uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.skip("uv is not here: pip install uv")
    return found


def test_uv_run(engine: Engine, tmp_path: Path) -> None:
    script = engine.application("answers.py")[1]
    words = [uv(), "run", "--offline", "--no-project", "--python", str(engine.python), script]
    assert_recorded(engine.record(tmp_path, words))


def test_uv_run_in_a_project(engine: Engine, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    (project / "pyproject.toml").write_text(
        f'[project]\nname = "application"\nversion = "1"\nrequires-python = ">={python}"\ndependencies = []\n'
    )
    torch = next((engine.python.parent.parent / "lib").glob("python*/site-packages"))
    script = engine.application("answers.py")[1]
    interpreter = os.path.realpath(engine.python)
    words = [uv(), "run", "--offline", "--project", str(project), "--python", interpreter, script]
    # The project's own environment is empty: its engine comes by PYTHONPATH, as all else here.
    run = Engine(engine.python, (*engine.folders, torch), engine.examples).record(tmp_path, words)
    assert_recorded(run)
    assert (project / ".venv").is_dir()


def test_torchrun_records_both_ranks(engine: Engine, tmp_path: Path) -> None:
    words = [str(engine.python), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    assert_recorded(engine.record(tmp_path, [*words, *engine.application("answers.py")[1:]]), processes=2)


def test_a_sitecustomize_of_the_users(engine: Engine, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "sitecustomize.py").write_text("WHOSE = 'theirs'\n")
    run = engine.with_first(theirs).record(tmp_path, engine.application("answers.py"))
    assert_recorded(run)
    assert "theirs" in run.done.stdout


def test_another_version_of_phasetrace_is_installed(engine: Engine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in ("phasetrace", "phasetrace_agent", "phasetrace_transformers"):
        (other / name).mkdir(parents=True)
        (other / name / "__init__.py").write_text("__version__ = '9.9'\n")
    (other / "phasetrace-9.9.dist-info").mkdir()
    (other / "phasetrace-9.9.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: phasetrace\nVersion: 9.9\n"
    )
    words = engine.application("answers.py", "--import-phasetrace")
    run = engine.with_first(other).record(tmp_path, words)
    assert_recorded(run)
    assert run.done.stdout.splitlines()[-1] == "9.9"
