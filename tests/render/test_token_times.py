"""Who or what held a request's tokens up."""

from dataclasses import replace

import pytest

from phasetrace.model import Recording, Request, StepCount
from phasetrace.render import token_times
from phasetrace.render.ink import Ink
from phasetrace.render.timeline import timeline
from tests import builders
from tests.builders import EPOCH, MS


def server(readers: int = 1) -> tuple[Request, Recording]:
    """One request of 30 tokens, and others whose prompts are read in its 20th step, which takes 200 ms."""
    steps = builders.steps(
        30, ms=[10] * 19 + [200] + [10] * 10, computed=[16] + [1] * 18 + [1 + 32 * readers] + [2] * 10
    )
    one = builders.request("talk-1", steps=steps)
    at = EPOCH + 190 * MS
    others = [
        builders.request(
            f"talk-{n}",
            steps=steps,
            prompt=32,
            arrival_ns=at,
            received_ns=at,
            scheduled_ns=at,
            first_token_ns=at + 200 * MS,
            first_step=19,
            prefill_chunks=(StepCount(19, 32),),
        )
        for n in range(2, 2 + readers)
    ]
    return one, builders.recording(one, *others, steps=[steps])


@pytest.mark.parametrize(
    ("readers", "said"),
    [
        (1, "reading 32 tokens of talk-2"),
        (2, "reading 64 tokens of talk-2, talk-3"),
        (4, "reading 128 tokens of talk-2, talk-3 and 2 more"),
    ],
)
def test_a_stall_names_those_whose_prompts_were_read(readers: int, said: str) -> None:
    one, recording = server(readers)
    steps = timeline(one, recording)
    assert steps is not None
    lines = token_times.stalls(one, steps, recording, Ink(width=200))
    assert lines[2].endswith(said)


def test_every_token_has_its_line_and_the_late_one_its_reason() -> None:
    one, recording = server()
    head, *lines = token_times.every(one, recording).splitlines()
    assert len(lines) == 30
    late = lines[19]
    assert late.split()[:5] == ["20", "390", "ms", "200", "ms"] and "reading 32 tokens" in late
    assert sum("reading" in line for line in lines) == 1


def test_a_mark_stands_where_the_stall_begins() -> None:
    one, recording = server()
    steps = timeline(one, recording)
    assert steps is not None
    line = token_times.marks(token_times.longest(steps), one.begin_ns, 490 * MS, 49)
    assert line == " " * 19 + "1"


def test_a_request_without_steps_says_so() -> None:
    one, recording = server()
    said = token_times.every(one, Recording(requests=recording.requests))
    assert said == "the times of its tokens were not recorded\n"


def test_ids_are_shown_and_never_obeyed() -> None:
    one, recording = server()
    evil = [replace(r, id=f"\x1b[2J{n}") for n, r in enumerate(recording.requests)]
    said = token_times.every(evil[0], replace(recording, requests=tuple(evil)))
    assert "\x1b" not in said and r"tokens of \x1b[2J1" in said
