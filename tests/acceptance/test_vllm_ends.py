"""However a vLLM server ends, the trace holds what was recorded until then and says what happened."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from phasetrace.model import Process, Recording, RequestStatus
from tests.acceptance.real import Engine
from tests.acceptance.streaming_client import ask
from tests.acceptance.vllm_server import Server, recorded_server

pytestmark = pytest.mark.slow

ENDS = {
    "engine core": signal.SIGKILL,
    "worker": signal.SIGKILL,
    "API server": signal.SIGTERM,
}
TITLES = {"engine core": "VLLM::EngineCore", "worker": "VLLM::Worker", "API server": "api_server"}


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


def descendants(pid: int) -> list[int]:
    """Of a process, in the order in which they were started."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for thread in threads for child in thread.read_text().split()]
    return [found for child in children for found in (child, *descendants(child))]


async def interrupted(server: Server, victim: int, number: signal.Signals) -> None:
    """Whole answers, then one whose server ends in the midst of it."""
    body = {"model": server.model, "prompt": "The river rises", "temperature": 0, "ignore_eos": True}
    for _ in range(3):
        answer = await ask(server.port, "/v1/completions", {**body, "max_tokens": 20})
        assert answer.status == 200
    long = ask(server.port, "/v1/completions", {**body, "max_tokens": 900, "stream": True})
    waiting = asyncio.create_task(long)
    await asyncio.sleep(1.0)
    os.kill(victim, number)
    # A vLLM that was asked to end may wait for its clients, whom it no longer answers
    await asyncio.wait({waiting}, timeout=10)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


def of_role(recording: Recording, role: str) -> Process:
    return next(process for process in recording.processes if process.facts.get("role") == role)


@pytest.mark.parametrize("role", list(ENDS))
def test_what_was_recorded_is_there_and_who_ended_is_named(
    role: str, vllm: Engine, tiny_model: Path, tmp_path: Path
) -> None:
    with recorded_server(vllm, tmp_path, tiny_model, ["--max-model-len", "1024"]) as server:
        victim = next(pid for pid in descendants(server.process.pid) if TITLES[role] in command_line(pid))
        asyncio.run(interrupted(server, victim, ENDS[role]))
        time.sleep(1)
    assert server.run is not None
    recording = server.run.recording
    print(
        [defect.defect for defect in recording.defects],
        [(r.status, r.error_type, r.output_tokens) for r in recording.requests],
    )
    whole = [request for request in recording.requests if request.status is RequestStatus.OK]
    assert [request.output_tokens for request in whole] == [20, 20, 20]
    (cut,) = (request for request in recording.requests if request.status is not RequestStatus.OK)
    assert cut.first_step is not None and cut.last_step is not None
    assert cut.last_step - cut.first_step > 10
    if role != "API server":
        process = of_role(recording, role)
        assert process.pid == victim
        assert any(f"{role} (process {process.pid})" in defect.defect for defect in recording.defects)
