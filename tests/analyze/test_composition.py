"""Who was in a shared step: what requests say of themselves gives again what the engine counted."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze.composition import Composition, composition
from phasetrace.analyze.step_table import step_table
from phasetrace.model import Recording, StepCount, Steps
from tests import builders
from tests.analyze.served import served


def made_of(recording: Recording) -> Composition:
    made = composition(recording.requests, step_table(recording))
    assert made is not None
    return made


@given(
    st.integers(0, 10_000), st.integers(2, 20), st.sampled_from([64, 256, 2048]), st.sampled_from([0, 5, 23])
)
def test_tokens_are_those_that_the_engine_computed(
    seed: int, requests: int, budget: int, evict_every: int
) -> None:
    recording = served(seed, requests=requests, budget=budget, evict_every=evict_every)
    made = made_of(recording)
    (steps,) = recording.steps
    assert (made.positions + made.prompt == steps.computed_tokens).all()
    assert made.shared.all()


def two(**fields: object) -> tuple[Steps, Recording]:
    """Two requests of one engine: `long` decodes from step 1 on, `late` reads in step 2 and decodes once."""
    steps = builders.steps(5, ms=10)
    long = builders.request("long", steps=steps, prompt=7, **fields)
    late = builders.request(
        "late",
        steps=steps,
        prompt=3,
        first_step=2,
        last_step=3,
        first_token_ns=int(steps.end_ns[2]),
        last_token_ns=int(steps.end_ns[3]),
        finished_ns=int(steps.end_ns[3]),
        prefill_chunks=(StepCount(2, 3),),
    )
    return steps, builders.recording(long, late, steps=[steps])


def test_context_grows_by_a_token_a_step() -> None:
    made = made_of(two()[1])
    assert made.sequences.tolist() == [0, 1, 1, 2, 1]
    assert made.context.tolist() == [0, 8, 9, 10 + 4, 11]
    assert made.prompt.tolist() == [7, 0, 3, 0, 0]
    assert made.attention.tolist() == [7 * 7 // 2, 0, 3 * 3 // 2, 0, 0]


def test_cached_tokens_are_context_that_is_not_read() -> None:
    made = made_of(two(cached_tokens=4, prefill_chunks=(StepCount(0, 3),))[1])
    assert made.prompt[0] == 3
    assert made.attention[0] == 3 * (2 * 4 + 3) // 2
    assert made.context[1] == 8


def test_steps_that_gave_nothing_or_several_change_the_context() -> None:
    made = made_of(two(yields=(StepCount(1, 3), StepCount(2, 0)))[1])
    assert made.sequences.tolist() == [0, 1, 0, 2, 1]
    assert made.context.tolist() == [0, 8, 0, 11 + 4, 12]


def test_speculated_positions_are_computed_too() -> None:
    steps, recording = two()
    drafted = replace(steps, proposed=np.array([4, 2, 0, 6, 0]))
    made = made_of(replace(recording, steps=(drafted,)))
    assert made.positions.tolist() == [0, 3, 1, 8, 1]


def test_what_is_read_again_attends_to_what_is_cached() -> None:
    again = (StepCount(2, 2), StepCount(3, 5))
    made = made_of(two(recomputed=again, yields=(StepCount(2, 0),))[1])
    assert made.sequences.tolist() == [0, 1, 0, 1, 1]
    assert made.prompt.tolist() == [7, 0, 3 + 2, 5, 0]
    held = 7 + 2  # its prompt and two tokens, of which two were cached
    before = held - 7
    assert made.attention[3] == 5 * (2 * (before + 2) + 5) // 2
    assert sorted(made.reading.row[made.reading.again].tolist()) == [2, 3]


def test_a_stream_of_one_request_is_not_shared() -> None:
    assert composition(builders.generation(8).requests, step_table(builders.generation(8))) is None
