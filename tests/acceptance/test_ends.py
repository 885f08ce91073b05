"""However an application ends, the trace has each finished step of each of its processes, but for one."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from phasetrace.model import Recording, RequestStatus
from phasetrace.read import read
from tests.acceptance.real import PATIENCE_S, Engine

pytestmark = pytest.mark.slow
EXIT_CODES = {"os-exit": 7, "exec": 0, "raise": 1, "memory": 1, "fork": 0, "spawn": 0, "pre-fork": 0}
PROCESSES = {"fork": 2, "spawn": 2, "pre-fork": 2}


def finished(progress: Path) -> dict[int, int]:
    """How many steps each process has told of, by its id."""
    return {int(path.name): len(path.read_bytes().splitlines()) for path in progress.iterdir()}


def in_trace(recording: Recording) -> Counter[int]:
    """How many steps each process has in the trace, by its id."""
    pids = {process.key: process.pid for process in recording.processes}
    found: Counter[int] = Counter()
    for steps in recording.steps:
        found[pids[steps.process]] += len(steps)
    return found


def assert_complete(recording: Recording, progress: Path) -> None:
    told, seen = finished(progress), in_trace(recording)
    requests = Counter(r.process for r in recording.requests)
    print(f"told {told}, in the trace {dict(seen)}, requests {dict(requests)}")
    assert {pid: (steps, seen[pid]) for pid, steps in told.items() if seen[pid] < steps - 1} == {}


@pytest.mark.parametrize("mode", list(EXIT_CODES))
def test_ends_by_itself(engine: Engine, tmp_path: Path, mode: str) -> None:
    progress = tmp_path / "progress"
    progress.mkdir()
    run = engine.record(tmp_path / "run", engine.application("stepping.py", mode, str(progress)))
    assert run.done.returncode == EXIT_CODES[mode], run.done.stderr
    assert len(finished(progress)) == PROCESSES.get(mode, 1)
    assert_complete(run.recording, progress)


@pytest.mark.soak(50)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_in_the_middle_of_decoding(
    engine: Engine, tmp_path: Path, number: signal.Signals, request: pytest.FixtureRequest
) -> None:
    steps = random.Random(request.node.name).randint(20, 200)  # another in each round of `make soak`
    progress = tmp_path / "progress"
    progress.mkdir()
    started = engine.start(tmp_path / "run", engine.application("stepping.py", "for-long", str(progress)))
    with started:
        pid = wait_for_steps(progress, steps)
        os.kill(pid, number)
        _, errors = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 128 + number, errors
    recording = read(tmp_path / "run" / "trace.json")
    assert [request.status for request in recording.requests] == [RequestStatus.CUT_OFF]
    assert_complete(recording, progress)


def wait_for_steps(progress: Path, steps: int) -> int:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for pid, done in finished(progress).items():
            if done >= steps:
                return pid
        time.sleep(0.005)
    raise AssertionError("the application makes no steps")
