"""The real vLLM, where it is installed."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ENGINES
from tests.integrations.vllm.engine import ENVIRONMENT


@pytest.fixture(scope="session")
def vllm_python() -> Path:
    """The Python that has vLLM; an error without only on demand, since `make test` does not set it up yet."""
    if not (ENGINES / "vllm" / "installed").exists():
        reason = "vLLM is not installed; `make engines-vllm` sets it up"
        if "vllm" in os.environ.get("PHASETRACE_REQUIRE_ENGINES", ""):
            pytest.fail(reason)
        pytest.skip(reason)
    return ENGINES / "vllm" / "bin" / "python"


@pytest.fixture(scope="session")
def tiny_model(vllm_python: Path, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers; heads of 32, the smallest that vLLM computes on CPUs."""
    folder = tmp_path_factory.mktemp("vllm") / "tiny"
    sizes = ["--hidden", "128", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--context", "1024"]
    subprocess.run(
        [vllm_python, examples / "small_model.py", folder, *sizes],
        env={**os.environ, **ENVIRONMENT},
        check=True,
        capture_output=True,
        timeout=240,
    )
    return folder
