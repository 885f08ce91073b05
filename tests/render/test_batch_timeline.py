"""Who sat in which steps of the busiest second."""

from dataclasses import replace

from phasetrace.model import Interval
from phasetrace.render.batch_timeline import MOST_REQUESTS, busiest_second
from tests import builders
from tests.analyze.served import served
from tests.builders import EPOCH, MS


def shown(*recording, **how) -> list[str]:  # type: ignore[no-untyped-def]
    text = busiest_second(*recording, **{"width": 95, "ascii": True, **how})
    assert text is not None
    return text.splitlines()


def two():  # type: ignore[no-untyped-def]
    """One decodes for 800 ms; in its fourth step another's prompt is read, which had waited for 200 ms."""
    steps = builders.steps(8, ms=100, computed=[16, 1, 1, 33, 2, 2, 2, 2])
    first = builders.request("first", steps=steps, prompt=16)
    second = builders.request(
        "second",
        steps=steps,
        prompt=32,
        arrival_ns=EPOCH + 100 * MS,
        received_ns=EPOCH + 100 * MS,
        scheduled_ns=EPOCH + 300 * MS,
        first_token_ns=EPOCH + 400 * MS,
        first_step=3,
        prefill_chunks=(builders.StepCount(3, 32),),
    )
    return builders.recording(first, second, steps=[steps])


def test_every_cell_says_what_the_request_did() -> None:
    title, _, axis, tokens, first, second, legend = shown(two())
    assert title.startswith("the busiest 800 ms, 0 ns after the first request: 8 steps computed 59 tokens")
    assert axis.split() == ["0", "400", "ms", "800", "ms"]
    cells = 80
    assert first.split() == ["first", "P" * 10 + "D" * (cells - 10)]
    name, row = second.split()
    assert name == "second"
    assert [row.count(mark) for mark in "qPD"] == [20, 10, 40]
    assert row.index("q") < row.index("P") < row.index("D")
    assert legend.split("  ")[-3:] == ["P reads a prompt", "D decodes", "q waits"]
    assert len(tokens) == 94


def test_evicted_time_is_marked() -> None:
    recording = two()
    gone = replace(
        recording.requests[0],
        preemptions=(Interval(EPOCH + 500 * MS, EPOCH + 600 * MS),),
        yields=(builders.StepCount(5, 0),),
    )
    lines = shown(replace(recording, requests=(gone, recording.requests[1])))
    assert "evicted" in lines[-1]


def test_more_requests_than_fit_are_counted() -> None:
    lines = shown(served(1, requests=80, slots=40, budget=4096))
    assert any(line.startswith("  and ") for line in lines)
    assert len(lines) <= MOST_REQUESTS + 6


def test_colour_adds_no_width() -> None:
    plain, coloured = shown(two(), ascii=False), shown(two(), ascii=False, color=True)
    assert len(plain) == len(coloured)
    assert "\x1b[" in coloured[4]


def test_calls_of_their_own_have_none() -> None:
    assert busiest_second(builders.generation(8)) is None
