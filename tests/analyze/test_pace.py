"""Tokens over the course of a run: none is lost, and a gap shows wherever it reaches."""

from phasetrace import analyze
from phasetrace.model import Pace, StepCount
from tests.builders import MS, generation, recording, request, steps


def pace(recorded) -> Pace:
    found = analyze.breakdown(recorded).pace
    assert found is not None
    return found


def test_every_token_is_somewhere() -> None:
    taken = steps(50, rows=3)
    found = pace(recording(request(steps=taken, rows=3), steps=[taken]))
    assert sum(found.tokens) == 150
    assert found.end_ns - found.begin_ns == 500 * MS


def test_a_long_gap_shows_in_every_stretch_that_it_reaches_into() -> None:
    taken = steps(20, ms=[10.0] * 10 + [200.0] + [10.0] * 9)
    found = pace(recording(request(steps=taken), steps=[taken]))
    held = [at for at, gap in enumerate(found.longest_gap_ns) if gap == 200 * MS]
    stretch = (found.end_ns - found.begin_ns) / len(found.tokens)
    assert abs(len(held) * stretch - 200 * MS) < 2 * stretch
    assert held == list(range(held[0], held[-1] + 1))
    assert max(found.longest_gap_ns) == 200 * MS


def test_before_the_first_token_there_is_no_gap() -> None:
    taken = steps(10, ms=[300.0] + [10.0] * 9)
    found = pace(recording(request(steps=taken), steps=[taken]))
    assert found.longest_gap_ns[:100] == (0,) * 100 and found.tokens[:100] == (0,) * 100


def test_tokens_of_a_step_that_gave_several_count() -> None:
    taken = steps(10)
    yields = tuple(StepCount(step, 2) for step in range(1, 10))
    found = pace(recording(request(steps=taken, output=19, yields=yields), steps=[taken]))
    assert sum(found.tokens) == 19


def test_without_times_of_tokens_there_is_none() -> None:
    assert analyze.breakdown(recording(request())).pace is None
    assert analyze.breakdown(generation(1)).pace is None
    assert analyze.breakdown(recording()).pace is None
