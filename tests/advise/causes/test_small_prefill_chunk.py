"""A token budget that is too small is told by chunks that take as long as a decode step."""

from __future__ import annotations

from typing import Any

import pytest

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
from phasetrace.model import Ceilings, Diagnosis, Goal, ModelFacts, Recording
from phasetrace.semconv import Cause
from tests import builders
from tests.builders import EPOCH, MS

MODEL = ModelFacts("m", parameters=7_000_000_000, weight_bytes=14_000_000_000, device="cuda")


def served(chunk_ms: float, budget: int | None = 64, prompt: int = 2048, **fields: Any) -> Recording:
    """Requests one after the other, a step of 20 ms a token, a prompt in chunks."""
    requests, begin = [], EPOCH
    for number in range(8):
        first = begin + int(prompt / (budget or 64) * chunk_ms * MS)
        last = first + 20 * 20 * MS
        requests.append(
            builders.request(
                f"r{number}",
                prompt=prompt,
                output=21,
                engine="vllm",
                arrival_ns=begin,
                received_ns=begin,
                scheduled_ns=begin,
                first_token_ns=first,
                last_token_ns=last,
                finished_ns=last,
            )
        )
        begin = last + 500 * MS
    facts = {} if budget is None else {"max_num_batched_tokens": budget}
    processes = (builders.process(facts=facts),)
    return builders.recording(*requests, processes=processes, models={"m": MODEL}, **fields)


def said(recording: Recording, goal: Goal = Goal.TTFT, ceilings: Ceilings | None = None) -> Diagnosis:
    return diagnose(breakdown(recording), goal=goal, ceilings=ceilings)


def test_chunks_that_take_a_step_each() -> None:
    found = said(served(21))
    assert found.cause == Cause.SMALL_PREFILL_CHUNK
    assert "--max-num-batched-tokens 2048" in found.findings[0].commands[0]
    prediction = found.findings[0].prediction
    assert prediction is not None and prediction.ratio > 2


def test_known_arithmetic_bounds_what_is_left() -> None:
    finding = said(served(21), ceilings=Ceilings(2e12, 312e12)).findings[0]
    assert finding.confidence == "high" and finding.prediction is not None
    assert finding.prediction.after == pytest.approx(2048 * 2 * 7e9 / 312e12 / 0.6, rel=0.05)


@pytest.mark.parametrize(
    ("recording", "goal"),
    [
        (served(80), Goal.TTFT),  # the chunk is what takes the time
        (served(21, budget=2048), Goal.TTFT),  # one chunk a prompt
        (served(21, budget=None), Goal.TTFT),
        (served(21, prompt=100), Goal.TTFT),
        (served(21), Goal.TPOT),
    ],
)
def test_otherwise_it_is_something_else(recording: Recording, goal: Goal) -> None:
    assert said(recording, goal).cause != Cause.SMALL_PREFILL_CHUNK


def test_where_the_budget_is_not_said_it_is_asked_for() -> None:
    untold = said(served(20, None))
    (asked,) = [q.measure for q in untold.not_enough if q.cause == Cause.SMALL_PREFILL_CHUNK]
    assert "--engine-config" in asked
    for settled in (served(20, None, prompt=100), served(20, 4096), served(20)):
        assert Cause.SMALL_PREFILL_CHUNK not in [q.cause for q in said(settled).not_enough]
