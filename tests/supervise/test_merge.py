"""Two recordings of one run are put together: nothing twice, nothing missing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.model import Part, Pause, Recording, RequestStatus, Steps
from phasetrace.supervise.merge import Merged, merge
from tests import builders


def steps(first: int, count: int) -> Steps:
    begin = np.arange(first, first + count, dtype=np.int64) * builders.MS
    part = np.full(count, builders.MS, dtype=np.int64)
    return Steps(builders.PROCESS, 7, first, begin, begin + builders.MS, {Part.FORWARD: part}, running=part)


def indices(recording: Recording) -> list[int]:
    return [s.first_index + i for s in recording.steps for i in range(len(s))]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=6),
    st.integers(0, 30),
    st.integers(1, 30),
)
def test_each_step_once(chunks: list[tuple[int, int]], first: int, count: int) -> None:
    earlier = Merged()
    for chunk in chunks:
        earlier.write(Recording(steps=(steps(*chunk),)))
    both = merge(earlier.recording, Recording(steps=(steps(first, count),)))
    expected = {*range(first, first + count)}.union(*(range(a, a + n) for a, n in chunks))
    assert sorted(indices(both)) == sorted(expected)
    for s in both.steps:
        assert len(s) == len(s.end_ns) == len(s.parts[Part.FORWARD])
        assert s.begin_ns[0] == s.first_index * builders.MS


def test_the_request_that_ended_wins_over_its_cut_off_self() -> None:
    ended = builders.request()
    cut = builders.request(status=RequestStatus.CUT_OFF)
    for one, other in ((ended, cut), (cut, ended)):
        (request,) = merge(Recording(requests=(one,)), Recording(requests=(other,))).requests
        assert request.status is RequestStatus.OK


def test_counts_of_a_process_never_fall() -> None:
    earlier = builders.process(hook_calls=9, lost_records=1, troubles=("a",))
    later = builders.process(hook_calls=5, lost_records=2, troubles=("b",))
    (process,) = merge(Recording(processes=(earlier,)), Recording(processes=(later,))).processes
    assert (process.hook_calls, process.lost_records, process.troubles) == (9, 2, ("a", "b"))


def test_a_pause_seen_twice_is_one() -> None:
    pause = Pause(builders.PROCESS, "gc", builders.EPOCH, builders.EPOCH + 500)
    shifted = Pause(builders.PROCESS, "gc", builders.EPOCH + 100, builders.EPOCH + 600)
    other = Pause(
        builders.PROCESS, "gc", builders.EPOCH + 10 * builders.MS, builders.EPOCH + 11 * builders.MS
    )
    assert merge(Recording(pauses=(pause,)), Recording(pauses=(shifted, other))).pauses == (pause, other)
