"""A vLLM of an unknown version runs untouched, and it is said why nothing of it was recorded."""

import json
from pathlib import Path

import pytest

from tests.integrations.agent import Run
from tests.integrations.vllm.engine import recording, run_application

pytestmark = pytest.mark.slow


def test_an_unknown_version_runs_untouched_and_is_reported(
    tmp_path: Path, vllm_python: Path, tiny_model: Path
) -> None:
    run, result = Run(tmp_path, vllm_python), tmp_path / "told.json"
    done = run_application(
        run, "unknown_application.py", str(tiny_model), str(result), VLLM_ENABLE_V1_MULTIPROCESSING="0"
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(result.read_text()) == {"tokens": 5, "hooked": False}
    recorded = recording(run)
    assert recorded.requests == ()
    (process,) = recorded.processes
    assert process.refused == {"vllm": "version 0.99, known are 0.32 to 0.33"}
    assert not process.troubles
