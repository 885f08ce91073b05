"""Diagnoses made by hand, as the rooms before render would give them."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from phasetrace.model import (
    Breakdown,
    Defect,
    Diagnosis,
    Finding,
    Goal,
    ModelFacts,
    Part,
    PartTime,
    Pause,
    Percentiles,
    Phase,
    PhaseTime,
    Prediction,
    Process,
    Recording,
    Request,
    RequestBreakdown,
    RequestStatus,
    Sequence,
    StepCount,
    Steps,
)

MS = 1_000_000
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the file of that name; `make record-golden` writes it anew."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--record-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def made() -> ModuleType:
    """This module: what it makes."""
    return sys.modules[__name__]


def phase(which: Phase, ms: float, **parts: float) -> PhaseTime:
    """A phase of so many milliseconds, and its parts."""
    split = tuple(PartTime(Part(name.replace("_", "-")), int(t * MS)) for name, t in parts.items())
    return PhaseTime(which, int(ms * MS), split)


def request(ident: str = "7f3a91c2", **changes: object) -> Request:
    """One greedy request of 120 output tokens."""
    given: dict[str, object] = {
        "id": ident,
        "trace_id": "0" * 31 + "1",
        "span_id": "0" * 15 + "1",
        "parent_span_id": None,
        "process": "a" * 16,
        "engine": "transformers",
        "operation": "text_completion",
        "model": "m",
        "arrival_ns": 0,
        "scheduled_ns": 10 * MS,
        "first_token_ns": 110 * MS,
        "last_token_ns": 110 * MS + 119 * 10 * MS + 50 * MS,
        "finished_ns": 1355 * MS,
        "finish_reason": "length",
        "mode": "greedy",
        "sequences": (Sequence(512, 0, 120, "length"), Sequence(300, 212, 80, "stop")),
        "cached_tokens": 0,
        "stream": 1,
        "first_step": 0,
        "last_step": 119,
        "prefill_chunks": (StepCount(0, 1024),),
    }
    return Request(**{**given, **changes})  # type: ignore[arg-type]


def steps() -> Steps:
    """Its steps: prefill, then 10 ms each, the fiftieth held up by the garbage collector for 50 ms."""
    took = np.full(120, 10 * MS)
    took[0] = 100 * MS
    took[50] = 60 * MS
    end = 10 * MS + np.cumsum(took)
    sampling = np.full(120, MS)
    return Steps(
        process="a" * 16,
        stream=1,
        first_index=0,
        begin_ns=end - took,
        end_ns=end,
        parts={Part.FORWARD: took - sampling, Part.SAMPLING: sampling},
        running=np.full(120, 2),
        new_tokens=np.full(120, 2),
    )


def request_breakdown() -> RequestBreakdown:
    """Where that request's time went."""
    return RequestBreakdown(
        request=request(),
        phases=(
            phase(Phase.FRONTEND, 10, application=7, other=3),
            phase(Phase.PREFILL, 100, forward=99, sampling=1),
            phase(Phase.DECODE, 1240, forward=1071, sampling=119, gc=50),
            phase(Phase.DELIVERY, 4),
            phase(Phase.UNATTRIBUTED, 1),
        ),
        e2e_ns=1355 * MS,
        ttft_ns=110 * MS,
        tpot_ns=1240 * MS / 119,
    )


def recording(**changes: object) -> Recording:
    """A run of two processes, one of which started an unrecorded Python."""
    given: dict[str, object] = {
        "requests": (request(),),
        "steps": (steps(),),
        "pauses": (Pause("a" * 16, "gc", 601 * MS, 651 * MS),),
        "models": {"m": ModelFacts("m", name="demo-model", device="cpu")},
        "processes": (
            Process("a" * 16, 10, 1, engines={"transformers": "5.24.0"}, hook_calls=4800, hook_ns=MS),
            Process("b" * 16, 11, 10, uncovered=("python -I: isolated",)),
        ),
        "begin_ns": 0,
        "end_ns": 5_000 * MS,
    }
    return Recording(**{**given, **changes})  # type: ignore[arg-type]


def breakdown(**changes: object) -> Breakdown:
    """Two requests, one warm-up, one failed."""
    one = request_breakdown()
    given: dict[str, object] = {
        "recording": recording(),
        "requests": (one, one),
        "warm_up": (one,),
        "failed": (request("bad", status=RequestStatus.FAILED, error_type="RuntimeError"),),
        "phases": (
            phase(Phase.FRONTEND, 20, application=14, other=6),
            phase(Phase.PREFILL, 200, forward=198, sampling=2),
            phase(Phase.DECODE, 2480, forward=2120, sampling=178, logits=60, gc=100, criteria=10, other=12),
            phase(Phase.DELIVERY, 8),
            phase(Phase.UNATTRIBUTED, 2),
        ),
        "metrics": {
            "ttft_ns": Percentiles(110 * MS, 120 * MS, 121 * MS),
            "tpot_ns": Percentiles(10.4 * MS, 10.5 * MS, 10.5 * MS),
            "itl_ns": Percentiles(10.0 * MS, 10.2 * MS, 60 * MS),
            "e2e_ns": Percentiles(1355 * MS, 1360 * MS, 1361 * MS),
        },
        "throughput_tok_s": 148.2,
        "defects": (Defect("2 of 40 spans carry no end time: those requests are left out"),),
        "unsplit": ("delivery: the streamer's own time is not recorded; pass a streamer to see it",),
    }
    return Breakdown(**{**given, **changes})  # type: ignore[arg-type]


def finding(cause: str = "long-output", **changes: object) -> Finding:
    """A finding that owns the decode."""
    given: dict[str, object] = {
        "cause": cause,
        "phase": "decode",
        "ns": 2480 * MS,
        "share": 0.915,
        "confidence": "high",
        "evidence": (
            "decode takes 2.48 s of 2.71 s: 119 steps of 10.4 ms a request",
            "the step time does not grow with length, so tokens set the time",
        ),
        "recommendation": "Ask for fewer tokens: most answers end at the limit of 120.",
        "commands": ("model.generate(**inputs, max_new_tokens=40)",),
        "tradeoff": "answers that need more than 40 tokens are cut off",
        "prediction": Prediction("e2e_s", 1.355, 0.511, 0.49, 0.53, 2.65),
    }
    return Finding(**{**given, **changes})  # type: ignore[arg-type]


def diagnosis(**changes: object) -> Diagnosis:
    """A verdict with two findings."""
    given: dict[str, object] = {
        "cause": "long-output",
        "verdict": "Decode owns 92 % of the time: 120 tokens a request, one after the other, 10.4 ms each.",
        "goal": Goal.E2E,
        "breakdown": breakdown(),
        "findings": (
            finding(),
            finding(
                "gc-pause",
                phase="host",
                share=0.037,
                prediction=Prediction("e2e_s", 1.355, 1.305, 1.3, 1.31, 1.038),
            ),
        ),
    }
    return Diagnosis(**{**given, **changes})  # type: ignore[arg-type]
