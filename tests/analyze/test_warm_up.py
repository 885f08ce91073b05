"""Warm-up is told apart by time per new token, and only where the recording shows it."""

from collections.abc import Sequence

import pytest

from phasetrace.analyze import breakdown
from phasetrace.model import Recording
from tests import builders
from tests.analyze.served import served
from tests.builders import EPOCH, MS


def calls(*prefills: tuple[float, int], decode: Sequence[float] = (10,) * 10) -> Recording:
    """Calls one after the other: (milliseconds of prefill, tokens of prompt)."""
    requests, taken, begin = [], [], EPOCH
    for number, (ms, prompt) in enumerate(prefills, 1):
        steps = builders.steps(stream=number, ms=[ms, *decode], begin=begin, prefill=prompt)
        requests.append(builders.request(f"r{number}", steps=steps, prompt=prompt))
        taken.append(steps)
        begin = int(steps.end_ns[-1]) + MS
    return builders.recording(*requests, steps=taken)


def warm(recording: Recording) -> list[str]:
    return [request.request.id for request in breakdown(recording).warm_up]


def test_a_slow_first_request() -> None:
    assert warm(calls((2000, 20), (50, 20), (55, 22), (50, 20))) == ["r1"]


def test_two_slow_first_requests() -> None:
    assert warm(calls((2000, 20), (900, 20), (55, 22), (50, 20), (52, 20))) == ["r1", "r2"]


def test_a_long_prompt_first_is_no_warm_up() -> None:
    assert warm(calls((2000, 4000), (50, 100), (55, 100), (50, 100))) == []


def test_a_slow_request_later_is_no_warm_up() -> None:
    assert warm(calls((50, 20), (50, 20), (2000, 20), (50, 20))) == []


def test_one_or_two_requests_are_no_warm_up() -> None:
    assert warm(calls((2000, 20))) == []
    assert warm(calls((2000, 20), (50, 20))) == []


def test_a_compile_in_the_first_decode_step_of_the_only_request_leaves_it_in() -> None:
    assert warm(calls((50, 20), decode=(5000, *[10] * 20))) == []


def test_a_compile_in_the_first_decode_step_of_the_first_request() -> None:
    first = calls((50, 20), decode=(5000, *[10] * 20))
    steps = builders.steps(21, stream=2, begin=EPOCH + 10_000 * MS)
    second = builders.request("r2", steps=steps)
    assert warm(builders.recording(*first.requests, second, steps=[*first.steps, steps])) == ["r1"]


def test_a_little_warmth_is_left_in() -> None:
    assert warm(calls((90, 20), (50, 20), (55, 20), (50, 20), decode=[10] * 100)) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_server_that_reads_prompts_beside_answers_is_not_warming_up(seed: int) -> None:
    """Steps that read a prompt of 600 tokens take many times as long as those that do not."""
    assert warm(served(seed, slots=6, budget=4096, cost=(1e6, 1e5, 100.0, 3e5, 0.0))) == []
