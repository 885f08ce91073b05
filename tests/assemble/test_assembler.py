"""Records become a recording, bit by bit, and nothing is lost on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.assemble.assembler import Assembler
from phasetrace.assemble.spool import SegmentInfo
from phasetrace.model import Part, Recording, Request, RequestStatus, StepCount
from phasetrace_agent import layout
from tests.builders import EPOCH, MS, Clock

FORWARD, CRITERIA, SETUP = (layout.PART_CODE[name] for name in ("forward", "criteria", "setup"))


class App:
    """An application whose records go straight to an assembler."""

    says_steps = False

    def __init__(self, assembler: Assembler | None = None, key: str = "00000000000000a1") -> None:
        self.clock = Clock()
        self.assembler = assembler or Assembler()
        self.info = SegmentInfo(key, 1, 0, 0, 0, 0, EPOCH)

    def write(self, kind: int, payload: bytes) -> None:
        self.assembler.feed(self.info, [(kind, payload)])

    def facts(self, scope: int, key: int = 0, **data: Any) -> None:
        self.write(layout.FACTS, layout.encode_blob(key, scope, self.clock(), data))

    def arrived(self, request: int = 1, **data: Any) -> None:
        self.write(layout.ARRIVED, layout.encode_blob(request, 0, self.clock(), data))

    def detail(self, request: int = 1, **data: Any) -> None:
        self.write(layout.DETAIL, layout.encode_blob(request, 0, self.clock(), data))

    def finished(self, request: int = 1, **data: Any) -> None:
        self.write(layout.FINISHED, layout.encode_blob(request, 0, self.clock(), data))

    def mark(self, request: int, point: int) -> None:
        self.write(layout.MARK, layout.encode_mark(request, point, self.clock()))

    def step(self, stream: int, index: int, ms: float = 10, **changes: Any) -> None:
        begin = self.clock()
        middle = self.clock.tick(int(ms * MS) - 1000)
        end = self.clock.tick(1000)
        payload = layout.encode_step(stream, index, begin, [FORWARD, CRITERIA], [middle, end], **changes)
        self.write(layout.STEP, payload)

    def generate(self, request: int = 1, tokens: int = 4, prompt: int = 8, **data: Any) -> None:
        self.arrived(request, **data)
        for index in range(tokens):
            first = {"joined": (request,), "scheduled": [(request, prompt)]} if index == 0 else {}
            self.step(request, index, **first)
        self.clock.tick(MS)
        ended = [{"prompt": prompt, "output": tokens, "reason": "length"}]
        said = {"steps": tokens} if self.says_steps else {}
        self.finished(request, sequences=ended, **said)

    def end(self) -> Recording:
        self.assembler.processes_ended([self.info.process])
        return self.assembler.close()


def only(recording: Recording) -> Request:
    (request,) = recording.requests
    return request


def test_a_generate_call_becomes_a_request_with_its_steps() -> None:
    app = App()
    begin = EPOCH + app.clock()
    app.facts(layout.ENGINE, engine="transformers", version="5.24.0")
    app.facts(layout.MODEL, 3, name="tiny", layers=2, unheard_of=1)
    app.generate(tokens=4, model=3, mode="greedy", settings={"max_new_tokens": 4, "odd": [1]})
    recording = app.end()

    request = only(recording)
    assert request.arrival_ns == request.received_ns == request.scheduled_ns == begin
    assert request.first_token_ns == begin + 10 * MS
    assert request.last_token_ns == begin + 40 * MS
    assert request.finished_ns == begin + 41 * MS
    assert request.status is RequestStatus.OK
    assert (request.first_step, request.last_step, request.stream) == (0, 3, 1)
    assert request.prefill_chunks == (StepCount(0, 8),)
    assert (request.prompt_tokens, request.output_tokens, request.finish_reason) == (8, 4, "length")
    assert request.settings == {"max_new_tokens": 4}
    assert request.engine == "transformers"
    assert recording.models[request.model or ""].layers == 2

    (steps,) = recording.steps
    assert steps.begin_ns.tolist() == [begin + i * 10 * MS for i in range(4)]
    assert (sum(steps.parts.values()) == steps.end_ns - steps.begin_ns).all()
    assert steps.parts[Part.CRITERIA].tolist() == [1000] * 4
    assert steps.computed_tokens is not None and steps.computed_tokens.tolist() == [8, 1, 1, 1]
    assert steps.new_tokens is not None and steps.new_tokens.tolist() == [1, 1, 1, 1]


def test_chunked_prefill_ends_with_the_first_step_that_yields() -> None:
    app = App()
    begin = EPOCH + app.clock()
    app.arrived()
    for index in range(3):
        joined = (1,) if index == 0 else ()
        nothing = [(1, 0)] if index < 2 else []
        app.step(1, index, joined=joined, scheduled=[(1, 100)], yielded=nothing)
    app.step(1, 3)
    app.finished(sequences=[{"prompt": 300, "output": 2}])
    request = only(app.end())
    assert request.first_token_ns == begin + 30 * MS
    assert request.prefill_chunks == (StepCount(0, 100), StepCount(1, 100), StepCount(2, 100))


def test_a_row_that_has_ended_gives_no_more_tokens() -> None:
    app = App()
    app.arrived(settings={"batch_rows": 2})
    for index in range(4):
        app.step(1, index, joined=(1,) if index == 0 else ())
    app.finished(sequences=[{"prompt": 8, "output": 4}, {"prompt": 8, "output": 2}])
    (steps,) = app.end().steps
    assert steps.running is not None and steps.running.tolist() == [2, 2, 2, 2]
    assert steps.new_tokens is not None and steps.new_tokens.tolist() == [2, 2, 1, 1]


def test_speculated_tokens_are_counted_from_yields() -> None:
    app = App()
    app.arrived()
    app.step(1, 0, joined=(1,))
    app.step(1, 1, yielded=[(1, 3)])
    app.finished(sequences=[{"prompt": 8, "output": 4}])
    recording = app.end()
    assert only(recording).yields == (StepCount(1, 3),)
    assert recording.steps[0].new_tokens is not None
    assert recording.steps[0].new_tokens.tolist() == [1, 3]


def test_a_request_without_an_end_is_cut_off_with_its_last_known_marks() -> None:
    app = App()
    begin = EPOCH + app.clock()
    app.arrived(sequences=[{"prompt": 8}])
    for index in range(3):
        app.step(1, index, joined=(1,) if index == 0 else ())
    request = only(app.end())
    assert request.status is RequestStatus.CUT_OFF
    assert (request.last_token_ns, request.finished_ns) == (begin + 30 * MS, None)
    assert request.output_tokens == 3 and "sequences" in request.derived


def test_an_exception_makes_it_failed() -> None:
    app = App()
    app.arrived()
    app.finished(error="OutOfMemoryError", reason="error")
    request = only(app.end())
    assert (request.status, request.error_type) == (RequestStatus.FAILED, "OutOfMemoryError")


def test_arrival_is_the_frontends_begin_where_it_is_known() -> None:
    for data, expected in [
        ({"frontend_begin": 990 * MS}, 990),
        ({"parent": {"trace": "a" * 32, "span": "b" * 16, "begin_wall": EPOCH + 980 * MS}}, 980),
        ({"tokenize": [970 * MS, 975 * MS]}, 970),
        ({"frontend_begin": 990 * MS, "parent": {"begin_wall": EPOCH + 5 * MS}}, 990),
        ({"parent": {"begin_wall": EPOCH + 5000 * MS}}, 1000),
        ({}, 1000),
    ]:
        app = App()
        app.generate(**data)
        request = only(app.end())
        assert request.arrival_ns == EPOCH + expected * MS, data
        assert request.received_ns == EPOCH + 1000 * MS


def test_a_parent_gives_its_trace() -> None:
    app = App()
    app.generate(parent={"trace": "a" * 32, "span": "b" * 16})
    request = only(app.end())
    assert (request.trace_id, request.parent_span_id) == ("a" * 32, "b" * 16)


def test_text_made_after_the_call_belongs_to_delivery() -> None:
    app = App()
    app.generate(tokens=1, tokenize=[999 * MS, 1000 * MS])
    end = app.clock()
    app.detail(detokenize=[end + MS, end + 3 * MS])
    request = only(app.end())
    assert request.finished_ns == EPOCH + end + 3 * MS
    assert (request.tokenize_ns, request.detokenize_ns) == (MS, 2 * MS)


def test_requests_of_two_processes_with_the_same_number_stay_apart() -> None:
    first = App()
    second = App(first.assembler, key="00000000000000b2")
    first.generate()
    second.generate()
    requests = first.assembler.close().requests
    assert len({r.id for r in requests}) == len({r.trace_id for r in requests}) == 2


def test_the_same_records_give_the_same_ids() -> None:
    traces = set()
    for _ in range(2):
        app = App()
        app.generate()
        traces.add((only(app.end()).trace_id, len(traces) >= 0))
    assert len(traces) == 1


def test_a_finished_request_waits_one_take_for_its_late_details() -> None:
    app = App()
    app.generate(tokens=2)
    assert app.assembler.take().requests == ()
    app.detail(cached=5)
    app.write(layout.DEVICE, layout.encode_device(1, 1, 777))
    taken = app.assembler.take()
    assert only(taken).cached_tokens == 5
    assert taken.steps[0].device_ns is not None and taken.steps[0].device_ns.tolist() == [-1, 777]
    assert app.assembler.take().requests == ()


def test_a_word_that_comes_too_late_makes_no_ghost() -> None:
    app = App()
    app.generate()
    app.assembler.take()
    app.assembler.take()
    app.detail(cached=5)
    assert app.end().requests == ()


def test_steps_in_another_threads_segment_are_waited_for() -> None:
    app = App()
    app.arrived()
    app.step(1, 0, joined=(1,))
    app.clock.tick(10 * MS)
    app.finished(sequences=[{"prompt": 8, "output": 3}])
    late = App(app.assembler)
    late.clock.now = 1020 * MS
    late.step(1, 2, left=(1,))
    for _ in range(4):
        assert app.assembler.take().requests == ()
    late.clock.now = 1010 * MS
    late.step(1, 1)
    taken = app.assembler.take()
    assert len(taken.steps) == 1 and len(taken.steps[0]) == 3
    assert only(taken).last_step == 2


def test_a_request_that_says_how_many_steps_it_took_waits_for_them() -> None:
    app = App()
    app.arrived()
    app.step(1, 0, joined=(1,))
    app.finished(sequences=[{"prompt": 8, "output": 2}], steps=2)
    for _ in range(4):
        assert app.assembler.take().requests == ()
    app.step(1, 1)
    assert only(app.assembler.take()).last_step == 1


def test_how_it_was_measured_is_kept() -> None:
    app = App()
    app.arrived()
    app.finished(streamed=77, forward_end="upper-bound")
    request = only(app.end())
    assert request.streamed_ns == 77
    assert request.settings == {"forward_end": "upper-bound"}


def test_a_lost_step_splits_the_columns_and_holds_nothing_back_for_ever() -> None:
    app = App()
    app.arrived()
    for index in (0, 1, 3):
        app.step(1, index, joined=(1,) if index == 0 else (), left=(1,) if index == 3 else ())
    app.finished()
    taken = [app.assembler.take() for _ in range(20)]
    assert [s.first_index for t in taken for s in t.steps] == [0, 3]
    assert sum(len(t.requests) for t in taken) == 1


def batched(app: App, tokens: int = 6) -> None:
    """Two requests in one engine core's stream 9; the second joins at step 2 and leaves last."""
    for request in (1, 2):
        app.arrived(request, stream=9, sequences=[{"prompt": 5}])
    app.step(9, 0, joined=(1,), scheduled=[(1, 5)])
    app.step(9, 1)
    app.step(9, 2, joined=(2,), scheduled=[(2, 5)])
    app.step(9, 3, left=(1,))
    app.finished(1)
    app.step(9, 4)
    app.step(9, 5, left=(2,))
    app.finished(2)


def test_a_shared_stream_knows_its_batch() -> None:
    app = App()
    batched(app)
    recording = app.end()
    (steps,) = recording.steps
    assert steps.running is not None and steps.running.tolist() == [1, 1, 2, 2, 1, 1]
    assert steps.computed_tokens is not None and steps.computed_tokens.tolist() == [5, 1, 6, 2, 1, 1]
    first, second = recording.requests
    assert (first.first_step, first.last_step, first.output_tokens) == (0, 3, 4)
    assert (second.first_step, second.last_step, second.output_tokens) == (2, 5, 4)
    assert first.received_ns is None  # nobody said when the engine had it


def test_a_shared_stream_comes_in_pieces_that_fit_together() -> None:
    app = App()
    whole = App()
    batched(whole)
    expected = whole.end()
    pieces = []
    for index in range(12):
        app.step(9, index)
        pieces.append(app.assembler.take())
    assert sum(len(p.steps) for p in pieces) == 0  # nobody needs them and no chunk is full
    again = App()
    batched(again)
    pieces = [again.assembler.take(), again.assembler.take(), again.end()]
    ends = np.concatenate([s.end_ns for p in pieces for s in p.steps])
    assert ends.tolist() == expected.steps[0].end_ns.tolist()
    assert sum(len(p.requests) for p in pieces) == 2


def test_a_long_shared_stream_does_not_fill_memory() -> None:
    app = App()
    cut = 0
    for index in range(5000):
        app.step(9, index)
        if index % 100 == 99:
            cut += sum(len(s) for s in app.assembler.take().steps)
    stream = next(iter(app.assembler._processes.values()))._streams[9]
    assert cut >= 3 * 1024
    assert len(stream.times) < 2200


def test_finished_requests_are_forgotten() -> None:
    app = App()
    for request in range(1, 200):
        app.generate(request, tokens=2)
        app.assembler.take()
    state = next(iter(app.assembler._processes.values()))
    assert len(state._requests) <= 2 and len(state._streams) <= 2 and len(state._done._above) <= 2


def test_the_cost_of_recording_is_counted() -> None:
    app = App()
    app.facts(layout.PROCESS, executable="python", script="app.py", costs={"step": 2000, "arrived": 500})
    app.generate(tokens=4)
    (process,) = app.end().processes
    assert process.hook_calls == 6
    assert process.hook_ns == 4 * 2000 + 500
    assert process.executable == "python" and "costs" not in process.facts


def test_what_a_record_costs_between_steps_is_added_to_what_the_calibration_saw() -> None:
    app = App()
    app.facts(layout.PROCESS, costs={"step": 2000, "record": 800}, step_record_ns=10_800)
    app.generate(tokens=4)
    (process,) = app.end().processes
    assert process.hook_ns == 4 * (2000 + 10_000)
    assert "step_record_ns" not in process.facts


def test_troubles_are_said_once_and_losses_added_up() -> None:
    app = App()
    for _ in range(2):
        app.write(layout.TROUBLE, layout.encode_blob(0, 0, 0, {"where": "generate", "error": "KeyError"}))
    app.write(layout.TROUBLE, layout.encode_blob(0, 0, 0, {"lost": 3, "why": "disk full"}))
    app.write(layout.TROUBLE, layout.encode_blob(0, 0, 0, {"uncovered": "python -I", "why": "isolated"}))
    app.assembler.lost(app.info.process, 4)
    (process,) = app.end().processes
    assert process.troubles == ("generate: KeyError",)
    assert process.uncovered == ("python -I: isolated",)
    assert process.lost_records == 7


def test_a_record_that_makes_no_sense_is_counted_as_lost() -> None:
    app = App()
    app.write(layout.ARRIVED, b"\1\0\0\0")
    app.write(layout.ARRIVED, layout.encode_blob(1, 0, 0, {})[:-2] + b"{")
    app.write(layout.PREFIX, layout.encode_prefix(1, (1 << 32) - 1, (5,), (16,)))
    app.write(200, b"a kind of the future")
    (process,) = app.end().processes
    assert process.lost_records == 3


def test_a_record_at_an_impossible_time_is_counted_as_lost() -> None:
    app, never = App(), (1 << 64) - 1
    app.write(layout.CLOCK, layout.encode_clock(0, never))
    app.write(layout.STEP, layout.encode_step(1, 0, 5, (4,), (never,)))
    app.write(layout.PAUSE, layout.encode_pause(layout.GC, 2, 100, never, 7))
    recorded = app.end()
    assert recorded.processes[0].lost_records == 3
    assert not len(recorded.steps) and not recorded.pauses


def test_one_offset_for_the_whole_run() -> None:
    app = App()
    for drift in (-5, 0, 900):
        app.write(layout.CLOCK, layout.encode_clock(0, EPOCH + drift))
    app.generate()
    app.write(layout.PAUSE, layout.encode_pause(layout.GC, 2, 100, 200, 7))
    first = app.assembler.take()
    app.write(layout.CLOCK, layout.encode_clock(0, EPOCH + 10**12))
    second = app.end()
    assert first.pauses[0].begin_ns == EPOCH + 100
    assert first.pauses[0].detail == {"generation": 2, "collected": 7}
    assert only(second).received_ns == EPOCH + 1000 * MS


def test_facts_are_repeated_only_when_they_change() -> None:
    app = App()
    app.facts(layout.MODEL, 3, name="tiny")
    app.generate(model=3)
    first = app.assembler.take()
    assert len(first.processes) == len(first.models) == 1
    second = app.assembler.take()
    assert len(second.requests) == 1 and second.models == {}
    app.step(9, 0)  # that it lives on is no news by itself
    assert app.assembler.take() == Recording()
    app.facts(layout.MODEL, 3, layers=2)
    assert [m.layers for m in app.assembler.take().models.values()] == [2]
    app.generate(2, model=3)
    counted = app.end().processes
    assert [p.hook_calls for p in counted] == [13]


class Kept(App):
    """An application whose records wait in the segments of its threads."""

    says_steps = True

    def __init__(self) -> None:
        super().__init__()
        self.segments: tuple[list[tuple[int, bytes]], ...] = ([], [])
        self._turn = 0

    def write(self, kind: int, payload: bytes) -> None:
        self._turn += 1
        self.segments[self._turn * 7 % 5 % 2].append((kind, payload))


@given(draws=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 9), st.booleans()), max_size=14))
def test_whatever_the_order_of_drains_each_request_comes_once_and_whole(
    draws: list[tuple[int, int, bool]],
) -> None:
    app = Kept()
    for request in range(1, 6):
        app.generate(request, tokens=4)
    parts: list[Recording] = []
    takes = 0
    for segment, size, takes_then in draws:
        records = app.segments[segment]
        app.assembler.feed(app.info, records[:size])
        del records[:size]
        if takes_then and takes < 2:  # a request is let go when nothing more can be expected of it
            takes += 1
            parts.append(app.assembler.take())
    for records in app.segments:
        app.assembler.feed(app.info, records)
    parts.append(app.end())
    requests = [request for part in parts for request in part.requests]
    assert sorted(request.id for request in requests) == [f"{app.info.process}-{n}" for n in range(1, 6)]
    whole = [request for request in requests if request.status is RequestStatus.OK]
    assert len(whole) == 5
    assert sum(len(steps) for part in parts for steps in part.steps) == 20
