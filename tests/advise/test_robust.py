"""Noise does not change the answer, and a missing field never makes it a wrong one."""

from dataclasses import replace

import numpy as np
import pytest

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
from phasetrace.model import Recording
from tests.advise import scenes
from tests.builders import EPOCH, MS

NOISE = 0.1
GRAIN = 5 * MS  # of the noise: about a step
DRAWS = 4
SCENES = {
    "healthy": scenes.chat(),
    "long-output": scenes.long_output(),
    "no-kv-cache": scenes.no_kv_cache(),
    "padding": scenes.padding(),
    "warm-up": scenes.warm_up(),
    "small-batch": scenes.small_batch(),
    "stream-consumer": scenes.stream_consumer(),
    "logits-processing": scenes.logits(),
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
    for seed in range(DRAWS):
        assert diagnose(breakdown(warped(SCENES[cause], seed))).cause == cause


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
    found = diagnose(breakdown(scenes.shifted(SCENES[cause], **missing)))
    sure = found.findings[0].confidence == "high"
    assert found.cause in (cause, "unknown", "healthy") or not sure
    if found.cause == "healthy" and cause != "healthy":
        assert not sure
