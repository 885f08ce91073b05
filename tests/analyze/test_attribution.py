"""Time is neither lost nor invented: phases sum to the request, parts to their phase, for any recording."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze import breakdown
from phasetrace.model import Breakdown, Interval, Part, Pause, Phase, Recording, Request, Steps
from tests import builders
from tests.builders import EPOCH, MS, PROCESS

PARTS = (Part.STREAM, Part.SETUP, Part.PREPARE, Part.FORWARD, Part.LOGITS, Part.SAMPLING, Part.OTHER)


def one(recording: Recording) -> Breakdown:
    result = breakdown(recording)
    assert len(result.requests) == 1
    return result


def check(result: Breakdown) -> None:
    """The identity of DESIGN.md section 5."""
    for request in (*result.requests, *result.warm_up):
        assert sum(phase.ns for phase in request.phases) == request.e2e_ns
        for phase in request.phases:
            assert phase.ns >= 0
            assert all(part.ns >= 0 for part in phase.parts)
            if phase.parts:
                assert sum(part.ns for part in phase.parts) == phase.ns
    assert result.total_ns == sum(request.e2e_ns for request in result.requests)
    for phase in result.phases:
        assert not phase.parts or sum(part.ns for part in phase.parts) == phase.ns


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Any streams of steps, each with one request somewhere on it, and any pauses."""
    requests: list[Request] = []
    steps: list[Steps] = []
    for number in range(draw(st.integers(1, 4))):
        count = draw(st.integers(1, 12))
        lengths = draw(
            st.lists(st.integers(0, 1000), min_size=count * len(PARTS), max_size=count * len(PARTS))
        )
        parts = np.array(lengths, np.int64).reshape(count, len(PARTS))
        begin = EPOCH + draw(st.integers(0, 5000))
        ends = begin + np.cumsum(parts.sum(axis=1))
        columns = {part: parts[:, place] for place, part in enumerate(PARTS)}
        whole = Steps(PROCESS, number + 1, 0, ends - parts.sum(axis=1), ends, columns)
        steps += _cut(whole, draw(st.integers(0, count)))
        first = draw(st.integers(0, count - 1))
        span = int(ends[-1]) + 2000
        marks = sorted(draw(st.lists(st.integers(EPOCH, span), min_size=6, max_size=6)))
        evicted = sorted(draw(st.lists(st.integers(marks[0], marks[-1]), min_size=2, max_size=2)))
        unknown = draw(
            st.sets(st.sampled_from(["received_ns", "scheduled_ns", "first_token_ns", "last_token_ns"]))
        )
        names = (
            "arrival_ns",
            "received_ns",
            "scheduled_ns",
            "first_token_ns",
            "last_token_ns",
            "finished_ns",
        )
        fields = dict(zip(names, marks, strict=True)) | dict.fromkeys(unknown)
        requests.append(
            builders.request(
                f"r{number}",
                **fields,
                stream=number + 1,
                first_step=first,
                last_step=count - 1,
                preemptions=(Interval(*evicted),),
                tokenize_ns=draw(st.none() | st.integers(0, 3000)),
                detokenize_ns=draw(st.none() | st.integers(0, 3000)),
            )
        )
    stops = draw(st.lists(st.tuples(st.integers(EPOCH, EPOCH + 20_000), st.integers(0, 3000)), max_size=6))
    pauses = tuple(Pause(PROCESS, "gc", begin, begin + length) for begin, length in stops)
    return builders.recording(*requests, steps=steps, pauses=pauses)


def _cut(steps: Steps, at: int) -> list[Steps]:
    def piece(rows: slice) -> Steps:
        return replace(
            steps,
            first_index=rows.start,
            begin_ns=steps.begin_ns[rows],
            end_ns=steps.end_ns[rows],
            parts={part: column[rows] for part, column in steps.parts.items()},
        )

    pieces = [piece(slice(0, at)), piece(slice(at, len(steps)))]
    return [found for found in pieces if len(found)]


@given(recordings())
def test_time_is_conserved(recording: Recording) -> None:
    check(breakdown(recording))


@given(recordings(), st.randoms(use_true_random=False))
def test_the_order_of_a_recording_does_not_matter(recording: Recording, random) -> None:  # type: ignore[no-untyped-def]
    def shuffled(items):  # type: ignore[no-untyped-def]
        mixed = list(items)
        random.shuffle(mixed)
        return tuple(mixed)

    mixed = replace(
        recording,
        requests=shuffled(recording.requests),
        steps=shuffled(recording.steps),
        pauses=shuffled(recording.pauses),
    )
    first, second = breakdown(recording), breakdown(mixed)
    assert first.phases == second.phases
    assert first.requests == second.requests
    assert first.metrics == second.metrics


def test_generate_is_cut_at_its_marks() -> None:
    steps = builders.steps(
        5, ms=[30, 10, 10, 10, 10], parts={Part.FORWARD: 0.8, Part.PREPARE: 0.1, Part.LOGITS: 0.1}
    )
    request = builders.request(steps=steps, frontend_ms=7, delivery_ms=3, tokenize_ns=2 * MS)
    found = one(builders.recording(request, steps=[steps])).requests[0]
    assert {phase.phase: phase.ns for phase in found.phases} == {
        Phase.FRONTEND: 7 * MS,
        Phase.PREFILL: 30 * MS,
        Phase.DECODE: 40 * MS,
        Phase.DELIVERY: 3 * MS,
        Phase.UNATTRIBUTED: 0,
    }
    assert found.part_ns(Phase.FRONTEND, Part.TOKENIZE) == 2 * MS
    assert found.part_ns(Phase.FRONTEND, Part.APPLICATION) == 5 * MS
    assert found.part_ns(Phase.DECODE, Part.FORWARD) == 32 * MS
    assert found.part_ns(Phase.DECODE, Part.OTHER) == 0
    assert found.ttft_ns == 37 * MS
    assert found.tpot_ns == 43 * MS / 4


def test_a_pause_is_taken_from_the_part_it_stopped() -> None:
    steps = builders.steps(2, ms=10, parts={Part.PREPARE: 0.2, Part.FORWARD: 0.8})
    pause = Pause(PROCESS, "gc", EPOCH + 11 * MS, EPOCH + 15 * MS)
    found = one(builders.recording(builders.request(steps=steps), steps=[steps], pauses=(pause,))).requests[0]
    assert found.part_ns(Phase.DECODE, Part.GC) == 4 * MS
    assert found.part_ns(Phase.DECODE, Part.PREPARE) == 1 * MS
    assert found.part_ns(Phase.DECODE, Part.FORWARD) == 5 * MS


def test_a_pause_outside_steps_is_named_too() -> None:
    steps = builders.steps(2, ms=10)
    pause = Pause(PROCESS, "gc", EPOCH - 4 * MS, EPOCH - 1 * MS)
    request = builders.request(steps=steps, frontend_ms=5)
    found = one(builders.recording(request, steps=[steps], pauses=(pause,))).requests[0]
    assert found.part_ns(Phase.FRONTEND, Part.GC) == 3 * MS
    assert found.part_ns(Phase.FRONTEND, Part.APPLICATION) == 2 * MS


def test_eviction_is_cut_out_of_decode() -> None:
    steps = builders.steps(6, ms=10)
    request = builders.request(steps=steps, preemptions=(Interval(EPOCH + 20 * MS, EPOCH + 35 * MS),))
    found = one(builders.recording(request, steps=[steps])).requests[0]
    assert found.phase_ns(Phase.PREEMPTED) == 15 * MS
    assert found.phase_ns(Phase.DECODE) == 35 * MS


def test_a_wait_on_a_shared_engine_is_for_the_running_step_first() -> None:
    steps = builders.steps(6, ms=10)
    early = builders.request("early", steps=steps)
    late = builders.request(
        "late",
        steps=steps,
        arrival_ns=EPOCH + 12 * MS,
        received_ns=EPOCH + 12 * MS,
        scheduled_ns=EPOCH + 30 * MS,
        first_token_ns=EPOCH + 40 * MS,
        first_step=3,
    )
    found = breakdown(builders.recording(early, late, steps=[steps])).requests[1]
    assert found.part_ns(Phase.QUEUE, Part.ENGINE_BUSY) == 8 * MS
    assert found.part_ns(Phase.QUEUE, Part.SCHEDULER) == 10 * MS


def test_a_wait_for_a_grammar_has_a_part_of_its_own() -> None:
    steps = builders.steps(6, ms=10)
    waited = builders.request(
        steps=steps,
        arrival_ns=EPOCH,
        received_ns=EPOCH,
        queued_ns=EPOCH + 2 * MS,
        grammar_ns=15 * MS,
        scheduled_ns=EPOCH + 20 * MS,
        first_token_ns=EPOCH + 30 * MS,
        first_step=2,
    )
    found = one(builders.recording(waited, steps=[steps])).requests[0]
    assert found.part_ns(Phase.QUEUE, Part.ENGINE_BUSY) == 2 * MS
    assert found.part_ns(Phase.QUEUE, Part.GRAMMAR) == 13 * MS
    assert found.part_ns(Phase.QUEUE, Part.SCHEDULER) == 5 * MS


def test_a_foreign_request_stays_whole_and_says_what_would_split_it() -> None:
    request = builders.request(first_token_ns=EPOCH + 4 * MS, received_ns=None)
    result = one(builders.recording(request))
    assert {p.phase: p.ns for p in result.phases} == {Phase.DECODE: 6 * MS, Phase.UNATTRIBUTED: 4 * MS}
    assert not any(phase.parts for phase in result.phases)
    assert any("first scheduled" in sentence for sentence in result.unsplit)
    assert any("steps" in sentence for sentence in result.unsplit)


def test_a_lost_step_is_in_other_and_said() -> None:
    steps = builders.steps(6, ms=10)
    head, tail = _cut(steps, 2)
    tail = _cut(tail, 1)[1] if len(tail) else tail
    tail = replace(tail, first_index=3)
    result = one(builders.recording(builders.request(steps=steps), steps=[head, tail]))
    assert result.requests[0].part_ns(Phase.DECODE, Part.OTHER) == 10 * MS
    assert any("1 steps are missing" in defect.defect for defect in result.defects)
