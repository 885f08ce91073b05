"""Phases and parts sum to the change of the mean e2e, whatever was recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace import analyze
from phasetrace.analyze.compare.alike import alike
from phasetrace.analyze.compare.phases import phase_changes
from phasetrace.model import Part, Phase, PhaseChange, Recording
from phasetrace.model.comparison import sum_of
from tests import builders
from tests.analyze.compare.runs import run

lengths = st.lists(st.integers(1, 400), min_size=1, max_size=12)
runs = st.builds(
    run,
    st.integers(1, 12),
    prompts=lengths,
    answers=lengths,
    noise=st.floats(0, 2),
    seed=st.integers(0, 99),
    per_token_ms=st.floats(0, 5),
)


def changes(before: Recording, after: Recording) -> tuple[float, tuple[PhaseChange, ...]]:
    found = alike(analyze.breakdown(before), analyze.breakdown(after))
    means = [
        sum(r.e2e_ns * w for r, w in zip(side, weights, strict=True))
        for side, weights in zip((found.before, found.after), found.weights, strict=True)
    ]
    return means[1] - means[0], phase_changes(found)


@given(runs, runs)
def test_phases_sum_to_the_change_of_e2e_and_parts_to_phases(before: Recording, after: Recording) -> None:
    difference, phases = changes(before, after)
    most = sum(p.before_ns + p.after_ns for p in phases)
    assert sum_of(phases) == pytest.approx(difference, abs=1e-9 * most)
    for phase in phases:
        assert not phase.parts or sum_of(phase.parts) == pytest.approx(phase.difference_ns, abs=1e-9 * most)
    sizes = [abs(phase.difference_ns) for phase in phases]
    assert sizes == sorted(sizes, reverse=True)


def test_what_only_one_run_could_split_is_in_other() -> None:
    begin = builders.EPOCH
    marks = {
        "scheduled_ns": begin,
        "first_token_ns": begin + 4 * builders.MS,
        "last_token_ns": begin + 9 * builders.MS,
    }
    unsplit = builders.recording(*(builders.request(f"r{n}", **marks) for n in range(3)))
    _, phases = changes(unsplit, run(3))
    prefill = next(p for p in phases if p.phase is Phase.PREFILL)
    assert {t.part: t.before_ns > 0 for t in prefill.parts} == {Part.FORWARD: False, Part.OTHER: True}
