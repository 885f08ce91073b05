"""The second in which most was computed."""

from phasetrace.analyze.busiest import SECOND, Window, busiest
from phasetrace.analyze.composition import composition
from phasetrace.analyze.step_table import step_table
from phasetrace.model import Recording
from tests import builders
from tests.analyze.served import served


def window(recording: Recording) -> Window | None:
    table = step_table(recording)
    made = composition(recording.requests, table)
    return None if made is None else busiest(made, table)


def test_no_other_second_computed_more() -> None:
    recording = served(1, requests=60)
    found = window(recording)
    assert found is not None
    (steps,) = recording.steps
    assert steps.computed_tokens is not None

    def computed(begin: int) -> int:
        within = (steps.begin_ns >= begin) & (steps.begin_ns < begin + SECOND)
        assert steps.computed_tokens is not None
        return int(steps.computed_tokens[within].sum())

    assert computed(found.begin_ns) == max(computed(int(begin)) for begin in steps.begin_ns)
    assert found.end_ns - found.begin_ns <= SECOND
    assert len(found.rows) == ((steps.begin_ns >= found.begin_ns) & (steps.begin_ns < found.end_ns)).sum()


def test_a_call_of_its_own_shares_no_step() -> None:
    assert window(builders.generation(8)) is None
