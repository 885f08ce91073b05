"""Recordings of real runs, each made once and looked at by several tests."""

import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.acceptance.real import PATIENCE_S, Engine, Run, Tour, files
from tests.conftest import ENGINES, engine_missing
from tests.emit.receivers import HttpReceiver

SECRET = "hf-planted-7391"


@pytest.fixture(scope="session")
def engine(engine_python: Path, current_transformers_dir: Path, examples: Path) -> Engine:
    """The newest tested transformers."""
    return Engine(engine_python, (current_transformers_dir,), examples)


@pytest.fixture(scope="session")
def vllm(vllm_python: Path, examples: Path) -> Engine:
    """The real vLLM, for CPUs."""
    return Engine(vllm_python, (), examples)


@pytest.fixture(scope="session", autouse=True)
def nothing_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No ceilings of the machine that runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def opentelemetry_folder() -> Path:
    """A folder with OpenTelemetry for the application, apart from its engine."""
    folder = ENGINES / "opentelemetry"
    if not (folder / "installed").exists():
        engine_missing("OpenTelemetry for applications")
    return folder


@pytest.fixture(scope="session")
def fault(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Record an example with a planted fault, once; and once more for each further `attempt`."""
    return recorder(engine, "faults", tmp_path_factory)


@pytest.fixture(scope="session")
def vllm_fault(vllm: Engine, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """The same for those that vLLM runs."""
    return recorder(vllm, "faults/vllm", tmp_path_factory)


def recorder(engine: Engine, folder: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Record an example of this folder, once a `name`, its arguments and `attempt`."""

    @cache
    def record(name: str, *arguments: str, attempt: int = 0) -> Run:
        script = engine.examples / folder / f"{name}.py"
        run = engine.record(tmp_path_factory.mktemp(name), [str(engine.python), str(script), *arguments])
        assert run.done.returncode == 0, run.done.stderr
        return run

    return record


@pytest.fixture(scope="session")
def tour_receiver() -> Iterator[HttpReceiver]:
    """Gets what `tour` sends."""
    receiver = HttpReceiver()
    yield receiver
    receiver.stop()


@pytest.fixture(scope="session")
def tour(engine: Engine, tour_receiver: HttpReceiver, tmp_path_factory: pytest.TempPathFactory) -> Tour:
    """A program that does what users do, with SECRET planted wherever a secret may be."""
    model, folder = tmp_path_factory.mktemp("model"), tmp_path_factory.mktemp("tour")
    command = engine.application("tour.py", str(model), SECRET, f"--token={SECRET}-in-argv")
    secrets = {"OPENAI_API_KEY": f"{SECRET}-in-environment"}
    seen: dict[str, bytes] = {}
    with engine.start(folder, command, "--otlp", tour_receiver.url, env=secrets) as started:
        end = time.monotonic() + PATIENCE_S
        while not (model / "toured").exists() and started.poll() is None and time.monotonic() < end:
            seen |= {f"{path.name} at {time.monotonic()}": path.read_bytes() for path in files(folder)}
            time.sleep(2)
        seen |= {str(path.relative_to(folder)): path.read_bytes() for path in files(folder)}
        output, errors = started.communicate("\n", timeout=PATIENCE_S)
    assert (model / "toured").exists(), (model / "stderr").read_text()
    done = subprocess.CompletedProcess(command, started.returncode, output, errors)
    return Tour(folder, done, seen)
