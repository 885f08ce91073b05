"""A trace of six requests, as `phasetrace run` would have written it."""

from pathlib import Path

import numpy as np
import pytest

from phasetrace.emit.trace_file import TraceFile
from phasetrace.model import ModelFacts, Part, Process, Recording, Request, Sequence, StepCount, Steps

MS = 1_000_000
BEGIN = 1_700_000_000 * 1_000_000_000
REQUESTS = 6
TOKENS = 40
PROCESS = "a" * 16


@pytest.fixture(autouse=True)
def nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ceilings of the machine that runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The trace file."""
    return written(tmp_path / "trace.json", recording())


@pytest.fixture
def recorded() -> Recording:
    """What the trace was written from."""
    return recording()


def written(path: Path, what: Recording) -> Path:
    """A trace file of a recording."""
    file = TraceFile(path)
    file.write(what)
    file.close()
    return path


def recording() -> Recording:
    """Six requests in a row, the last one slower than the others."""
    streams = [steps(i) for i in range(REQUESTS)]
    return Recording(
        requests=tuple(map(request, range(REQUESTS), streams)),
        steps=tuple(streams),
        models={
            "m": ModelFacts("m", name="tiny", parameters=1_000_000, weight_bytes=4_000_000, device="cpu")
        },
        processes=(
            Process(PROCESS, 10, 1, script="app.py", begin_ns=BEGIN, engines={"transformers": "5.24.0"}),
        ),
        begin_ns=BEGIN,
        end_ns=BEGIN + REQUESTS * 1_000 * MS,
    )


def steps(i: int) -> Steps:
    """Prefill, then a token a step."""
    took = np.full(TOKENS, (10 if i < REQUESTS - 1 else 12) * MS, np.int64)
    took[0] = 50 * MS
    end = BEGIN + i * 1_000 * MS + np.cumsum(took)
    sampling = np.full(TOKENS, MS, np.int64)
    return Steps(PROCESS, i + 1, 0, end - took, end, {Part.FORWARD: took - sampling, Part.SAMPLING: sampling})


def request(i: int, of: Steps) -> Request:
    """The request that these steps are of."""
    return Request(
        id=f"{i + 10:x}" * 8,
        trace_id=f"{i + 1:032x}",
        span_id=f"{i + 1:016x}",
        parent_span_id=None,
        process=PROCESS,
        engine="transformers",
        operation="text_completion",
        model="m",
        arrival_ns=int(of.begin_ns[0]),
        scheduled_ns=int(of.begin_ns[0]),
        first_token_ns=int(of.end_ns[0]),
        last_token_ns=int(of.end_ns[-1]),
        finished_ns=int(of.end_ns[-1]),
        finish_reason="length",
        sequences=(Sequence(100, 0, TOKENS, "length"),),
        mode="greedy",
        settings={"max_new_tokens": TOKENS},
        stream=of.stream,
        first_step=0,
        last_step=TOKENS - 1,
        prefill_chunks=(StepCount(0, 100),),
    )
