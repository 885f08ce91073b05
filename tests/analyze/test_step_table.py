"""The table of all steps: quick look-ups and many pauses at once give what adding up one by one gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze.pauses import merged_pauses
from phasetrace.analyze.step_parts import GC_COLUMN, PART_ORDER
from phasetrace.analyze.step_table import StepTable, step_table
from phasetrace.model import Part, Pause, Recording, Steps

PARTS = (Part.SCHEDULE, Part.FORWARD, Part.SAMPLING, Part.OTHER)
SPANS = st.tuples(st.integers(0, 400), st.integers(0, 60))  # begin and length of a pause


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Streams of short steps, some with gaps between them, in two processes that were paused."""
    steps = []
    for process, stream in draw(st.sets(st.tuples(st.sampled_from("pq"), st.integers(1, 3)), max_size=5)):
        rows = draw(
            st.lists(
                st.tuples(st.integers(0, 20), *[st.integers(0, 30)] * len(PARTS)), min_size=1, max_size=8
            )
        )
        gaps, parts = np.array([r[0] for r in rows]), np.array([r[1:] for r in rows])
        lengths = parts.sum(axis=1)
        ends = np.cumsum(gaps + lengths)
        columns = {part: parts[:, place].copy() for place, part in enumerate(PARTS)}
        steps.append(Steps(process, stream, draw(st.integers(0, 5)), ends - lengths, ends, columns))
    pauses = [
        Pause(process, "gc", begin, begin + length)
        for process in "pqr"
        for begin, length in draw(st.lists(SPANS, max_size=6))
    ]
    return Recording(steps=tuple(steps), pauses=tuple(pauses))


@given(recordings())
def test_pauses_are_taken_out_of_the_steps_that_they_stopped(recording: Recording) -> None:
    table = step_table(recording)
    assert table.parts.of(0, len(table)).tolist() == plainly_carved(recording, table)


@given(recordings())
def test_parts_still_sum_to_their_steps(recording: Recording) -> None:
    table = step_table(recording)
    assert (table.parts.of(0, len(table)).sum(axis=1) == table.length_ns).all()


def plainly_carved(recording: Recording, table: StepTable) -> list[list[int]]:
    """One pause, one step, one part after the other; a stopped part goes on where the pause ends."""
    rows: list[list[int]] = []
    for steps in sorted(recording.steps, key=lambda s: (s.process, s.stream, s.first_index)):
        pauses = list(zip(*merged_pauses(recording.pauses, steps.process), strict=True))
        for row in range(len(steps)):
            parts = [int(steps.parts[p][row]) if p in steps.parts else 0 for p in PART_ORDER]
            at = int(steps.begin_ns[row])
            for place in range(GC_COLUMN):
                end = at + parts[place]
                stopped = sum(max(0, int(min(e, end)) - int(max(b, at))) for b, e in pauses)
                parts[place] -= stopped
                parts[GC_COLUMN] += stopped
                at = end
            rows.append(parts)
    return rows


def test_a_pause_that_is_in_no_step_changes_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    steps = Steps("p", 1, 0, np.array([10]), np.array([20]), {Part.FORWARD: np.array([10])})
    empty = Steps("p", 2, 0, nothing, nothing, {})
    table = step_table(Recording(steps=(steps, empty), pauses=(Pause("p", "gc", 30, 40),)))
    assert table.parts.of(0, 1)[0, PART_ORDER.index(Part.FORWARD)] == 10
    assert table.parts.of(0, 1)[0, GC_COLUMN] == 0


@given(st.integers(0, 5 * 128), st.integers(0, 5 * 128), st.integers(0, 3 * 128))
def test_parts_are_added_up_over_any_rows(begin: int, length: int, steps: int) -> None:
    forward = np.arange(steps) ** 2
    ends = np.cumsum(forward + 7)
    columns = {Part.FORWARD: forward, Part.OTHER: np.full(steps, 7)}
    chunks = (Steps("p", 1, 0, ends - forward - 7, ends, columns),) if steps else ()
    table = step_table(Recording(steps=chunks))
    begin = min(begin, steps)
    end = min(begin + length, steps)
    assert table.parts.spent(begin, end).tolist() == table.parts.of(begin, end).sum(axis=0).tolist()
