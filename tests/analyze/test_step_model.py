"""The cost of a step is found again where it was planted, and a prediction says how far it can be trusted."""

from dataclasses import replace

import numpy as np
import pytest

from phasetrace.analyze import breakdown
from phasetrace.analyze.step_model import StepTime, coefficients_of, predict
from phasetrace.model import Recording, StepCostModel
from tests.analyze.served import COST, served
from tests.builders import PROCESS


def fitted(recording: Recording) -> StepCostModel:
    return breakdown(recording).step_costs[PROCESS]


@pytest.mark.parametrize("evict_every", [0, 17])
@pytest.mark.parametrize("seed", range(3))
def test_planted_coefficients_are_found(seed: int, evict_every: int) -> None:
    model = fitted(served(seed, evict_every=evict_every))
    assert coefficients_of(model) == pytest.approx(COST, rel=0.05)
    assert model.explained > 0.999


def test_noise_is_in_the_interval() -> None:
    model = fitted(served(2, requests=120, noise=0.1))
    assert 0.05 < model.spread < 0.15
    assert 0.6 < model.explained < 0.95
    for low, high, planted in zip(model.low, model.high, COST, strict=True):
        assert low <= planted * 1.15
        assert high >= planted * 0.85


def test_stalls_are_set_aside() -> None:
    recording = served(3)
    (steps,) = recording.steps
    late = np.zeros(len(steps), np.int64)
    late[[5, 60, 61]] = 3_000_000_000
    moved = np.cumsum(late)
    parts = {part: column + (late if part == "forward" else 0) for part, column in steps.parts.items()}
    slow = replace(steps, begin_ns=steps.begin_ns + moved - late, end_ns=steps.end_ns + moved, parts=parts)

    def at(ns: int) -> int:
        return ns + int(moved[max(0, int(steps.end_ns.searchsorted(ns)) if ns in steps.end_ns else -1)])

    requests = tuple(
        replace(
            r,
            first_token_ns=at(r.first_token_ns or 0),
            last_token_ns=at(r.last_token_ns or 0),
            finished_ns=at(r.finished_ns or 0),
        )
        for r in recording.requests
    )
    model = fitted(replace(recording, requests=requests, steps=(slow,)))
    assert model.set_aside >= 3
    assert coefficients_of(model) == pytest.approx(COST, rel=0.03)


def test_few_steps_tell_nothing() -> None:
    recording = served(1, requests=2)
    short = [replace(r, sequences=r.sequences) for r in recording.requests]
    (steps,) = recording.steps
    few = replace(
        steps,
        begin_ns=steps.begin_ns[:20],
        end_ns=steps.end_ns[:20],
        parts={part: column[:20] for part, column in steps.parts.items()},
        running=None,
        computed_tokens=None,
        new_tokens=None,
    )
    assert not breakdown(replace(recording, requests=tuple(short), steps=(few,))).step_costs


def predicted(**asked: float) -> StepTime:
    return predict(fitted(served(1, noise=0.02)), **{"sequences": 4, "context": 1000, **asked})


def test_a_prediction_inside_the_observed_range_is_close() -> None:
    time = predicted()
    planted = COST[0] + 4 * COST[1] + 1000 * COST[2]
    assert time.low_ns <= planted <= time.high_ns
    assert time.high_ns < 1.2 * time.low_ns
    assert time.beyond == ()


def test_a_prediction_beyond_the_observed_range_widens_and_says_so() -> None:
    near, far = predicted(), predicted(sequences=64, context=64_000)
    assert far.beyond == ("sequences", "context")
    assert (far.high_ns - far.low_ns) / far.ns > 3 * (near.high_ns - near.low_ns) / near.ns
    assert far.low_ns <= far.ns <= far.high_ns


def test_a_longer_prompt_than_any_says_so() -> None:
    time = predicted(prompt=100_000)
    assert time.beyond == ("prompt",)
    assert time.low_ns <= time.ns <= time.high_ns


def test_beyond_the_range_a_step_may_grow_in_proportion_though_nothing_seen_says_so() -> None:
    model = replace(fitted(served(1)), per_sequence_ns=0.0, per_context_ns=0.0)
    edge = predict(model, model.most_sequences, 0)
    twice = predict(model, 2 * model.most_sequences, 0)
    assert twice.ns == edge.ns
    assert twice.low_ns == edge.low_ns
    assert twice.high_ns == pytest.approx(edge.high_ns + edge.ns)
