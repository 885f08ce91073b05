"""Noise does not change the answer, and a missing field never makes it a wrong one."""

import os
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
from phasetrace.model import Goal, Recording
from tests.advise import scenes
from tests.advise.server import Asked, load, serve
from tests.builders import EPOCH, MS

NOISE = 0.1
GRAIN = 5 * MS  # of the noise: about a step
KEPT = 0.95  # of the draws
DRAWS = 1000 if os.environ.get("PHASETRACE_CAMPAIGN") == "fuzz" else 4
LONG = [Asked(500 + 1000 * k, 4000, 4) for k in range(8)]
# What is planted, the recording, and the goal where it was stated
SCENES: dict[str, tuple[Recording, Goal | None]] = {
    "healthy": (scenes.chat(), None),
    "long-output": (scenes.long_output(), None),
    "no-kv-cache": (scenes.no_kv_cache(), None),
    "padding": (scenes.padding(), None),
    "warm-up": (scenes.warm_up(), None),
    "small-batch": (scenes.small_batch(), None),
    "stream-consumer": (scenes.stream_consumer(), None),
    "logits-processing": (scenes.logits(), None),
    "slots-full": (serve(load(40, 60), slots=2), Goal.TTFT),
    "kv-full": (
        serve(load(40, 60), blocks=14, reserve=True, knobs={"num_gpu_blocks_override": 14}),
        Goal.TTFT,
    ),
    "overload": (serve(load(80, 40), slots=8, fixed_ms=1, row_ms=2), Goal.TTFT),
    "host-gap": (serve(load(40, 100), host=0.5), Goal.TPOT),
    "prefill-interference": (
        serve([*load(60, 120, prompt=32, output=80), *LONG], token_ms=0.12, budget=8192),
        Goal.TPOT,
    ),
}


def warped(recording: Recording, seed: int) -> Recording:
    """Time runs up to 10 % faster or slower, anew every few milliseconds; what is in order stays in order."""
    end = max(r.finished_ns or 0 for r in recording.requests) - EPOCH
    grid = np.arange(0, end + 2 * GRAIN, GRAIN)
    speed = 1 + np.random.default_rng(seed).uniform(-NOISE, NOISE, len(grid) - 1)
    place = np.concatenate([[0], np.cumsum(np.diff(grid) * speed)])

    def at(times):  # type: ignore[no-untyped-def]
        return EPOCH + np.interp(np.asarray(times) - EPOCH, grid, place).astype(np.int64)

    steps = []
    for taken in recording.steps:
        begins, ends = at(taken.begin_ns), at(taken.end_ns)
        scale = (ends - begins) / (taken.end_ns - taken.begin_ns)
        parts = {part: (column * scale).astype(np.int64) for part, column in taken.parts.items()}
        first = next(iter(parts))
        parts[first] = parts[first] + (ends - begins) - sum(parts.values())
        steps.append(replace(taken, begin_ns=begins, end_ns=ends, parts=parts))
    marks = ("arrival_ns", "received_ns", "scheduled_ns", "first_token_ns", "last_token_ns", "finished_ns")
    requests = [replace(r, **{mark: int(at(getattr(r, mark))) for mark in marks}) for r in recording.requests]
    return replace(recording, requests=tuple(requests), steps=tuple(steps))


@pytest.mark.parametrize("cause", SCENES)
def test_noise_keeps_the_cause(cause: str) -> None:
    recording, goal = SCENES[cause]
    found = Counter(
        str(diagnose(breakdown(warped(recording, seed)), goal=goal).cause) for seed in range(DRAWS)
    )
    assert found[cause] >= KEPT * DRAWS, found


@pytest.mark.parametrize("cause", SCENES)
@pytest.mark.parametrize(
    "missing",
    [
        {"settings": {}},
        {"mode": None},
        {"model": None},
        {"received_ns": None, "scheduled_ns": None},
        {"first_token_ns": None, "last_token_ns": None},
        {"stream": None, "first_step": None, "last_step": None},
        {"prefill_chunks": ()},
        {"sequences": ()},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_missing_field_gives_the_same_cause_or_doubt(cause: str, missing: dict[str, object]) -> None:
    recording, goal = SCENES[cause]
    found = diagnose(breakdown(scenes.shifted(recording, **missing)), goal=goal)
    sure = found.findings[0].confidence == "high"
    assert found.cause in (cause, "unknown", "healthy") or not sure
    if found.cause == "healthy" and cause != "healthy":
        assert not sure


SERVED = ("slots-full", "kv-full", "overload", "host-gap", "prefill-interference")


@pytest.mark.parametrize("cause", SERVED)
@pytest.mark.parametrize(
    "column", ["waits", "waiting", "kv_blocks", "running", "computed_tokens", "new_tokens"]
)
def test_a_missing_column_gives_the_same_cause_or_doubt(cause: str, column: str) -> None:
    recording, goal = SCENES[cause]
    less = replace(recording, steps=tuple(replace(s, **{column: None}) for s in recording.steps))
    found = diagnose(breakdown(less), goal=goal)
    assert found.cause in (cause, "unknown") or found.findings[0].confidence != "high"


@pytest.mark.parametrize("cause", SERVED)
def test_missing_knobs_give_the_same_cause_or_doubt(cause: str) -> None:
    recording, goal = SCENES[cause]
    less = replace(recording, processes=tuple(replace(p, facts={}) for p in recording.processes))
    found = diagnose(breakdown(less), goal=goal)
    assert found.cause in (cause, "unknown") or found.findings[0].confidence != "high"
