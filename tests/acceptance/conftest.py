"""Recordings of real runs, each made once and looked at by several tests."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.acceptance.real import Engine, Run
from tests.conftest import ENGINES, engine_missing


@pytest.fixture(scope="session")
def engine(engine_python: Path, current_transformers_dir: Path, examples: Path) -> Engine:
    """The newest tested transformers."""
    return Engine(engine_python, (current_transformers_dir,), examples)


@pytest.fixture(scope="session")
def opentelemetry_folder() -> Path:
    """A folder with OpenTelemetry for the application, apart from its engine."""
    folder = ENGINES / "opentelemetry"
    if not (folder / "installed").exists():
        engine_missing("OpenTelemetry for applications")
    return folder


@pytest.fixture(scope="session")
def fault(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Record an example with a planted fault, once."""

    @cache
    def record(name: str, *arguments: str) -> Run:
        script = engine.examples / "faults" / f"{name}.py"
        run = engine.record(tmp_path_factory.mktemp(name), [str(engine.python), str(script), *arguments])
        assert run.done.returncode == 0, run.done.stderr
        return run

    return record
