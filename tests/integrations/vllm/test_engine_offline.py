"""`LLM()` on the real engine: what is recorded agrees with what the engine says of itself."""

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from phasetrace.model import Part, Recording, Request
from tests.integrations.agent import Run
from tests.integrations.vllm.engine import recording, run_offline

pytestmark = pytest.mark.slow

Told = dict[str, dict[str, Any]]


def record(
    base: Path, python: Path, model: Path, *options: str, **environment: str
) -> tuple[Recording, Told]:
    """A recording of the application, and the engine's own statistics by request."""
    run, result = Run(base, python), base / "told.json"
    done = run_offline(run, str(model), str(result), *options, **environment)
    assert done.returncode == 0, done.stderr[-4000:]
    return recording(run), {told["id"]: told for told in json.loads(result.read_text())}


def told_of(request: Request, told: Told) -> dict[str, Any]:
    """By the name that the application knows; the engine adds random characters to it."""
    assert request.external_id is not None
    return told[request.external_id.rsplit("-", 1)[0]]


def agrees(recorded: Recording, told: Told) -> None:
    """Every request, every token, and the phases up to what lies between two readings of a clock."""
    assert len(recorded.requests) == len(told)
    for process in recorded.processes:
        assert (process.troubles, process.lost_records) == ((), 0)
    prefill, decode = [], []
    for request in recorded.requests:
        expected = told_of(request, told)
        assert request.output_tokens == expected["tokens"]
        assert request.parent_span_id == expected["parent"]  # the application's own span around the call
        assert request.cached_tokens == expected["cached"]
        assert request.first_step is not None
        assert request.last_step is not None
        given = {count.step: count.tokens for count in request.yields}
        steps = range(request.first_step, request.last_step + 1)
        assert sum(given.get(step, 1) for step in steps) == expected["tokens"]
        marks = [request.arrival_ns, request.received_ns, request.scheduled_ns, request.first_token_ns]
        marks += [request.last_token_ns, request.finished_ns]
        assert None not in marks
        assert marks == sorted(marks)  # type: ignore[type-var]
        assert request.scheduled_ns and request.first_token_ns and request.last_token_ns
        prefill.append(abs(request.first_token_ns - request.scheduled_ns - expected["prefill"] * 1e9))
        decode.append(abs(request.last_token_ns - request.first_token_ns - expected["decode"] * 1e9))
    assert median(prefill) < 1e6
    assert median(decode) < 1e6


def test_scheduled_ahead_steps_lie_end_to_end(tmp_path: Path, vllm_python: Path, tiny_model: Path) -> None:
    recorded, told = record(tmp_path, vllm_python, tiny_model, "--asynchronous")
    agrees(recorded, told)
    (steps,) = recorded.steps
    assert int((steps.end_ns - steps.begin_ns).sum()) <= int(steps.end_ns[-1] - steps.begin_ns[0])
    assert (steps.begin_ns[1:] >= steps.end_ns[:-1]).all()
    overlapped = steps.parts[Part.SCHEDULE] == 0
    assert overlapped.mean() > 0.9
    core = next(process for process in recorded.processes if "async_scheduling" in process.facts)
    assert core.facts["async_scheduling"] is True
