"""Recorded runs of a program that answers requests one after the other, and comparisons of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from phasetrace import advise, analyze
from phasetrace.analyze.compare import compare
from phasetrace.model import Comparison, Diagnosis, Goal, Recording, RequestStatus
from tests import builders
from tests.builders import EPOCH, MS

GAP_MS = 20.0


def run(
    requests: int = 24,
    *,
    prefill_ms: float = 100.0,
    step_ms: float = 10.0,
    prompts: int | Sequence[int] = 64,
    answers: int | Sequence[int] = 9,
    noise: float = 0.02,
    seed: int = 0,
    per_token_ms: float = 0.0,
    failed: int = 0,
    knobs: dict[str, Any] | None = None,
    **fields: Any,
) -> Recording:
    """Prefill and steps of about these lengths; the last `failed` requests raise an error."""
    random = np.random.default_rng(seed)
    begin, made, streams = EPOCH, [], []
    for n in range(requests):
        prompt, answer = (v if isinstance(v, int) else v[n % len(v)] for v in (prompts, answers))
        lengths = np.array([prefill_ms + per_token_ms * prompt, *[step_ms] * (answer - 1)])
        lengths *= np.exp(noise * random.standard_normal(answer))
        taken = builders.steps(begin=begin, ms=lengths.tolist(), stream=n + 1, prefill=prompt)
        one = builders.request(f"r{n}", steps=taken, prompt=prompt, **fields)
        if n >= requests - failed:
            one = replace(one, status=RequestStatus.FAILED, error_type="RuntimeError")
        made.append(one)
        streams.append(taken)
        begin = int(taken.end_ns[-1] + GAP_MS * MS)
    facts = {"engines": {"transformers": "5.24.0"}, "facts": knobs or {}}
    return builders.recording(*made, steps=streams, processes=(builders.process(**facts),))


def diagnosed(recording: Recording, goal: Goal = Goal.E2E) -> Diagnosis:
    return advise.diagnose(analyze.breakdown(recording), goal)


def compared(before: Recording, after: Recording, goal: Goal = Goal.E2E) -> Comparison:
    steps = analyze.step_table(before), analyze.step_table(after)
    return compare(diagnosed(before, goal), diagnosed(after, goal), steps, ("before.json", "after.json"))
