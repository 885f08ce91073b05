"""What becomes spans comes back from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from phasetrace.mapping import Detail, ResourceSpans, Span, SpanMaker, from_spans, to_spans
from phasetrace.mapping.columns import pack
from phasetrace.mapping.packed_table import pack_table
from phasetrace.mapping.step_spans import MOST, steps_to_spans
from phasetrace.mapping.step_window import StepWindow
from phasetrace.model import Pause, Recording, StepCount
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName
from tests.builders import EPOCH, PROCESS, generation, plain, recording, request, steps
from tests.mapping.strategies import recordings


@given(recordings())
def test_nothing_is_lost_on_the_way_through_spans(recorded: Recording) -> None:
    assert plain(from_spans(to_spans(recorded))) == plain(recorded)


@pytest.mark.parametrize("detail", Detail)
def test_nothing_is_lost_however_little_is_shown(detail: Detail) -> None:
    recorded = generation(tokens=2000)
    assert plain(from_spans(to_spans(recorded, detail))) == plain(recorded)


def test_long_streams_are_cut_for_spans_and_joined_again() -> None:
    recorded = recording(steps=[steps(3 * MOST + 7)])
    groups = list(to_spans(recorded))
    sizes = [len(group.spans) for group in groups if group.spans[0].name == "phasetrace.steps"]
    assert sizes == [1, 1, 1, 1]
    assert plain(from_spans(groups)) == plain(recorded)


def test_a_span_that_claims_millions_of_steps_is_left_out() -> None:
    (span,) = steps_to_spans(steps(4))
    several = np.full(1_000_000, 10)
    claimed = {A.STEPS_TABLE: pack_table([0 * several, several]), A.STEPS_COLUMNS: "", A.STEPS_PARTS: ""}
    found = from_spans([ResourceSpans({A.PROCESS_KEY: "p"}, [replace(span, kept=span.kept | claimed)])])
    assert not len(found.steps)
    assert "1 damaged spans named" in found.defects[0].defect


def test_pieces_that_do_not_fit_stay_apart() -> None:
    first, second = steps(4), steps(4, first_index=5)
    joined = from_spans(to_spans(recording(steps=[first, second])))
    assert [len(s) for s in joined.steps] == [4, 4]


def test_partial_recordings_make_one_whole() -> None:
    whole = steps(10)
    wanted = recording(request(steps=whole), steps=[whole])
    pieces = [steps(4), steps(6, begin=int(whole.end_ns[3]), first_index=4)]
    maker = SpanMaker()
    groups = list(maker.spans(recording(steps=[pieces[0]])))
    groups += maker.spans(recording(request(steps=whole), steps=[pieces[1]]))
    assert plain(from_spans(groups)) == plain(wanted)
    tokens = [t for group in groups for t in group.tokens]
    assert sum(map(len, tokens)) == 9  # found although the steps came in two pieces


def test_another_file_tells_all_facts_and_the_earlier_steps_of_its_requests() -> None:
    whole = steps(12)
    pauses = (Pause(PROCESS, "gc", EPOCH, EPOCH + 5, {}),)
    cuts = [(0, 3), (3, 6), (6, 9), (9, 12)]
    pieces = [steps(b - a, begin=int(whole.begin_ns[a]), first_index=a) for a, b in cuts]
    maker = SpanMaker()
    early = replace(recording(steps=pieces[:1]), pauses=pauses)
    for part in (early, recording(steps=pieces[1:2]), recording(steps=pieces[2:3])):
        list(maker.spans(replace(part, processes=early.processes if part is early else ())))
    maker.begin_anew()
    one = request(steps=whole, first_step=4, last_step=9)
    two = request("r2", steps=whole, first_step=5, last_step=11)
    groups = list(maker.spans(Recording(requests=(one,), steps=tuple(pieces[3:]))))
    groups += maker.spans(Recording(requests=(two,)))
    told = from_spans(groups)
    assert told.requests == (one, two)
    assert told.processes == early.processes and told.models == early.models and told.pauses == pauses
    (found,) = told.steps
    assert (found.first_index, len(found)) == (3, 9)  # what they need, once
    assert list(found.end_ns) == list(whole.end_ns[3:])


def test_steps_of_a_file_that_was_begun_anew_do_not_stay_in_memory() -> None:
    window = StepWindow(rows=10)
    window.add([steps(10)])
    window.begin_anew()
    window.add([steps(10, first_index=10)])
    assert window.take_absent(request(first_step=0, last_step=9)) == []


def test_the_latest_word_on_a_process_counts() -> None:
    early = generation()
    (old,) = early.processes
    late = replace(early, requests=(), steps=(), processes=(replace(old, hook_calls=99),))
    maker = SpanMaker()
    read = from_spans([*maker.spans(early), *maker.spans(late)])
    assert [p.hook_calls for p in read.processes] == [99]


def test_device_time_that_is_known_for_some_pieces_only() -> None:
    first = replace(steps(2), device_ns=np.array([5, 6], np.int64))
    second = steps(2, begin=int(first.end_ns[-1]), first_index=2)
    (joined,) = from_spans(to_spans(recording(steps=[first, second]))).steps
    assert joined.device_ns is not None and joined.device_ns.tolist() == [5, 6, -1, -1]


def test_spans_of_facts_are_for_files_only() -> None:
    for group in to_spans(generation()):
        assert group.file_only == all(span.name.startswith("phasetrace.") for span in group.spans)


def test_packed_columns_stay_out_of_what_endpoints_get() -> None:
    taken = steps(4)
    asked = request(steps=taken, yields=(StepCount(1, 3),))
    for group in to_spans(recording(asked, steps=[taken])):
        for span in group.spans:
            assert group.file_only or not any(isinstance(v, bytes) for v in span.attributes.values())


def test_steps_of_earlier_files_are_read() -> None:
    taken = replace(steps(5), device_ns=np.arange(5), waiting=None)
    kept = {
        A.STEPS_STREAM: taken.stream,
        A.STEPS_FIRST: taken.first_index,
        A.STEPS_BEGIN: pack(taken.begin_ns),
        A.STEPS_DURATION: pack(taken.end_ns - taken.begin_ns),
        **{f"phasetrace.steps.{name}": pack(c) for name, c in taken.known().items() if name != "device_ns"},
        A.STEPS_DEVICE: pack(np.arange(5)),
        **{A.STEPS_PART + part.value: pack(column) for part, column in taken.parts.items()},
    }
    span = Span(
        "0" * 32, "0" * 16, None, SpanName.STEPS, int(taken.begin_ns[0]), int(taken.end_ns[-1]), kept=kept
    )
    found = from_spans([ResourceSpans({A.PROCESS_KEY: taken.process}, [span])])
    assert plain(found)["steps"] == plain(recording(steps=[taken]))["steps"]
