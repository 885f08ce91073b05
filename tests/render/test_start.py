"""The start of an engine as bars."""

from phasetrace.model import Recording, Stage
from phasetrace.render.start import start

S = 10**9


def test_a_run_without_stages_shows_nothing() -> None:
    assert start(Recording()) is None


def test_stages_stand_under_the_one_they_lie_in_and_none_is_wider_than_the_output() -> None:
    stages = (
        Stage("core", "engine-start", 0, 40 * S),
        Stage("worker", "model-load", 5 * S, 15 * S),
        Stage("worker", "warm-up", 20 * S, 40 * S),
        Stage("worker", "graph-capture", 30 * S, 40 * S),
    )
    shown = start(Recording(stages=stages), width=72, ascii=True)
    assert shown is not None
    title, *lines = shown.splitlines()
    assert title == "start of the engine: 40.0 s"
    indents = [len(line) - len(line.lstrip()) for line in lines]
    assert indents == [2, 4, 4, 6]
    assert max(map(len, lines)) <= 72
    bars = [line.count("#") for line in lines]
    assert bars[0] == max(bars)
    assert abs(bars[2] - 2 * bars[1]) <= 1


def test_a_name_from_a_file_is_made_safe_and_many_stages_are_counted() -> None:
    stages = tuple(Stage("p", f"stage\x1b{n}", n, n + 1) for n in range(30))
    shown = start(Recording(stages=stages))
    assert shown is not None
    assert "\x1b" not in shown
    assert "6 more stages" in shown
