"""Where the tests find real engines and other Pythons.

Engines live under .engines/ (`make engines`), apart from phasetrace. Where they are missing, the tests that
need them skip by name. With PHASETRACE_REQUIRE_ENGINES=1 those of transformers fail instead, with "vllm"
those of vLLM (`make engines-vllm`), with "1 vllm" both.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ROOT / ".engines"
TRANSFORMERS_VERSIONS = ("4.46.3", "4.57.6", "5.24.0")

# `make fuzz` draws many thousand examples, others each time; all else a fixed 100, the same each time.
CAMPAIGN = os.environ.get("PHASETRACE_CAMPAIGN", "")
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile(
    "fuzz", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fuzz" if CAMPAIGN == "fuzz" else "fixed")


class OtherPython(NamedTuple):
    """A Python interpreter found on this machine."""

    version: tuple[int, int]
    path: Path


def engine_missing(what: str, target: str = "engines", required: str = "1") -> NoReturn:
    """Skip the test by name, or fail it where engines are required."""
    reason = f"{what} is not installed; `make {target}` sets it up"
    if required in os.environ.get("PHASETRACE_REQUIRE_ENGINES", "").split():
        pytest.fail(reason)
    pytest.skip(reason)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make record-golden` runs the tests with this option."""
    parser.addoption(
        "--record-golden", action="store_true", help="write golden files anew instead of comparing"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`make soak` runs a test marked `soak(n)` so many times."""
    marker = metafunc.definition.get_closest_marker("soak")
    if marker is not None and CAMPAIGN == "soak":
        metafunc.fixturenames.append("soak_round")
        metafunc.parametrize("soak_round", range(*marker.args))


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def examples() -> Path:
    """The folder of example applications."""
    return ROOT / "examples"


@pytest.fixture(scope="session")
def phasetrace_command() -> Path:
    """The `phasetrace` script of the environment that runs the tests."""
    return Path(os.environ.get("VIRTUAL_ENV", ROOT / ".venv")) / "bin" / "phasetrace"


@pytest.fixture(scope="session")
def engine_python() -> Path:
    """The Python of the engine environment: torch and numpy, no phasetrace, no OpenTelemetry."""
    python = ENGINES / "torch" / "bin" / "python"
    if not (ENGINES / "torch" / "installed").exists():
        engine_missing("torch")
    return python


def transformers_folder(version: str) -> Path:
    """The folder that holds one version of transformers, to be put on PYTHONPATH."""
    folder = ENGINES / f"transformers-{version}"
    if not (folder / "installed").exists():
        engine_missing(f"transformers {version}")
    return folder


@pytest.fixture(scope="session", params=TRANSFORMERS_VERSIONS)
def transformers_dir(request: pytest.FixtureRequest) -> Path:
    """Each tested version of transformers in turn."""
    return transformers_folder(request.param)


@pytest.fixture(scope="session")
def current_transformers_dir() -> Path:
    """The newest tested version of transformers, for tests that one version serves."""
    return transformers_folder(TRANSFORMERS_VERSIONS[-1])


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python that has vLLM."""
    if not (ENGINES / "vllm" / "installed").exists():
        engine_missing("vLLM", "engines-vllm", required="vllm")
    return ENGINES / "vllm" / "bin" / "python"


@pytest.fixture(scope="session")
def tiny_model(vllm_python: Path, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers; heads of 32, the smallest that vLLM computes on CPUs."""
    folder = tmp_path_factory.mktemp("vllm") / "tiny"
    sizes = ["--hidden", "128", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--context", "1024"]
    subprocess.run(
        [vllm_python, examples / "small_model.py", folder, *sizes],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": ""},
        check=True,
        capture_output=True,
        timeout=240,
    )
    return folder


@pytest.fixture(scope="session")
def other_pythons() -> Sequence[OtherPython]:
    """CPython 2.7 and 3.8 to 3.14 as far as they are here, one path a version, oldest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[tuple[int, int], Path] = {}
    for version in [(2, 7), *((3, minor) for minor in range(8, 15))]:
        name = "python{}.{}".format(*version)
        on_path = shutil.which(name)
        candidates = sorted(pyenv.glob("{}.{}.*/bin/{}".format(*version, name)), reverse=True)
        for candidate in [*candidates, *([Path(on_path)] if on_path else [])]:
            if runs(candidate, version):
                found[version] = candidate
                break
    return [OtherPython(version, path) for version, path in found.items()]


def runs(python: Path, version: tuple[int, int]) -> bool:
    """Whether this really starts CPython of that version (a pyenv shim may only print a complaint)."""
    code = "import sys, platform; print((platform.python_implementation(),) + tuple(sys.version_info[:2]))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == str(("CPython", *version))
