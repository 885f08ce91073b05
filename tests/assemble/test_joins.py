"""A server's frontend and its engine core tell of the same request in two processes: one comes out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from phasetrace.assemble.assembler import Assembler
from phasetrace.assemble.spool import SegmentInfo
from phasetrace.model import Interval, Provenance, Recording, Request, RequestStatus, StepCount, Wait
from phasetrace_agent import layout
from tests.builders import EPOCH, MS

FORWARD = layout.PART_CODE["forward"]
STREAM = 1
TRACE, SPAN = "a" * 32, "b" * 16


class Server:
    """A frontend (its requests are numbered from 1) and a core (from 11); times are milliseconds."""

    def __init__(self) -> None:
        self.assembler = Assembler()
        self.frontend = SegmentInfo("00000000000000f0", 1, 0, 0, 0, 0, EPOCH)
        self.core = SegmentInfo("00000000000000c0", 2, 1, 0, 0, 0, EPOCH)

    def blob(self, info: SegmentInfo, kind: int, ident: int, ms: float, **data: Any) -> None:
        payload = layout.encode_blob(ident, 0, int(ms * MS), data)
        self.assembler.feed(info, [(kind, payload)])

    def asked(self, ident: int, name: str, ms: float, **data: Any) -> None:
        told = {"engine": "vllm", "side": "frontend", "external": name, **data}
        self.blob(self.frontend, layout.ARRIVED, ident, ms, **told)

    def answered(self, ident: int, ms: float, output: int, **data: Any) -> None:
        rows = [{"prompt": 8, "padding": 0, "output": output, "reason": "length"}]
        told = {"reason": "length", "sequences": rows, **data}
        self.blob(self.frontend, layout.FINISHED, ident, ms, **told)

    def received(self, ident: int, name: str, ms: float, **data: Any) -> None:
        told = {"engine": "vllm", "side": "core", "external": name, "stream": STREAM, **data}
        told.setdefault("sequences", [{"prompt": 8, "padding": 0}])
        self.blob(self.core, layout.ARRIVED, ident, ms, **told)
        self.mark(ident, layout.RECEIVED, ms)

    def mark(self, ident: int, point: int, ms: float) -> None:
        self.assembler.feed(self.core, [(layout.MARK, layout.encode_mark(ident, point, int(ms * MS)))])

    def step(self, index: int, begin: float, end: float, **changes: Any) -> None:
        times = int(begin * MS), [FORWARD], [int(end * MS)]
        payload = layout.encode_step(STREAM, index, *times, **changes)
        self.assembler.feed(self.core, [(layout.STEP, payload)])

    def left(self, ident: int, ms: float, **data: Any) -> None:
        rows = [{"prompt": 8, "padding": 0, "output": 2, "reason": "length"}]
        self.blob(self.core, layout.FINISHED, ident, ms, **{"reason": "length", "sequences": rows, **data})

    def serve(self, frontend: int = 1, core: int = 11, name: str = "r", **data: Any) -> None:
        """One request of two tokens: 0 asked, 4 received, 6 scheduled, 16 and 26 tokens, 30 answered."""
        self.asked(frontend, name, 0, tokenize=[1 * MS, 3 * MS], **data)
        self.received(core, name, 4, mode="greedy")
        self.mark(core, layout.QUEUED, 5)
        self.mark(core, layout.SCHEDULED, 6)
        self.step(0, 6, 16, joined=(core,), scheduled=[(core, 8)])
        self.step(1, 16, 26, left=(core,))
        self.left(core, 26, cached=3)

    def take(self, times: int = 1) -> list[Request]:
        """What comes out of so many takes."""
        return [request for _ in range(times) for request in self.assembler.take().requests]


@pytest.fixture
def server() -> Server:
    return Server()


def only(recording: Recording | list[Request]) -> Request:
    (request,) = recording if isinstance(recording, list) else recording.requests
    return request


def test_two_sides_are_one_request(server: Server) -> None:
    server.serve(parent={"trace": TRACE, "span": SPAN, "begin_wall": None}, operation="chat")
    server.answered(1, 30, output=2, detokenize=[27 * MS, 28 * MS])
    recording = server.assembler.close()
    request = only(recording)
    at = [request.arrival_ns, request.received_ns, request.queued_ns, request.scheduled_ns]
    at += [request.first_token_ns, request.last_token_ns, request.finished_ns]
    assert [time - EPOCH for time in at if time is not None] == [ms * MS for ms in (0, 4, 5, 6, 16, 26, 30)]
    assert (request.trace_id, request.parent_span_id, request.operation) == (TRACE, SPAN, "chat")
    assert (request.process, request.stream) == (server.core.process, STREAM)
    assert (request.tokenize_ns, request.detokenize_ns) == (2 * MS, 1 * MS)
    assert (request.mode, request.cached_tokens, request.output_tokens) == ("greedy", 3, 2)
    assert (request.external_id, request.status) == ("r", RequestStatus.OK)
    assert request.prefill_chunks == (StepCount(0, 8),)
    assert [len(steps) for steps in recording.steps] == [2]


def test_the_request_waits_for_the_last_byte(server: Server) -> None:
    server.serve()
    assert server.take(times=20) == []
    server.answered(1, 300, output=2)
    request = only(server.take(times=3))
    assert request.finished_ns == EPOCH + 300 * MS
    assert server.take(times=3) == []
    assert server.assembler.close().requests == ()


def test_a_span_that_the_engine_told_of_before_is_the_requests_own_and_no_parent_of_itself(
    server: Server,
) -> None:
    server.asked(1, "r", 0, own={"trace": TRACE, "span": SPAN})
    server.received(11, "r", 4, parent={"trace": TRACE, "span": SPAN, "begin_wall": None})
    server.left(11, 26)
    server.answered(1, 27, output=2)
    request = only(server.assembler.close())
    assert (request.trace_id, request.span_id, request.parent_span_id) == (TRACE, SPAN, None)


def test_the_first_output_is_handed_over_while_the_engine_goes_on(server: Server) -> None:
    server.serve()
    for ms in (18, 300):
        payload = layout.encode_mark(1, layout.HANDED_OVER, ms * MS)
        server.assembler.feed(server.frontend, [(layout.MARK, payload)])
    server.answered(1, 27, output=2)
    request = only(server.assembler.close())
    assert (request.first_output_ns, request.finished_ns) == (EPOCH + 18 * MS, EPOCH + 300 * MS)


def test_the_first_bytes_of_an_exchange_may_be_another_prompts(server: Server) -> None:
    server.serve()
    payload = layout.encode_mark(1, layout.HANDED_OVER, 10 * MS)
    server.assembler.feed(server.frontend, [(layout.MARK, payload)])
    server.answered(1, 27, output=2)
    request = only(server.assembler.close())
    assert request.first_output_ns == request.first_token_ns
    assert request.provenance("first_output_ns") is Provenance.DERIVED


def test_a_core_whose_frontend_is_not_recorded_stands_alone(server: Server) -> None:
    server.received(11, "r", 4)
    server.step(0, 6, 16, joined=(11,), left=(11,), scheduled=[(11, 8)])
    server.left(11, 16)
    request = only(server.take(times=3))
    assert request.arrival_ns == request.received_ns == EPOCH + 4 * MS


def test_a_request_that_never_reached_the_core(server: Server) -> None:
    server.asked(1, "r", 0)
    server.answered(1, 5, output=0, reason="error", error="EngineDeadError")
    request = only(server.take(times=3))
    assert (request.status, request.error_type) == (RequestStatus.FAILED, "EngineDeadError")
    assert request.process == server.frontend.process
    assert request.received_ns is None


def test_the_frontend_knows_that_a_stop_string_was_no_abort(server: Server) -> None:
    server.asked(1, "r", 0)
    server.received(11, "r", 4)
    server.step(0, 6, 16, joined=(11,), scheduled=[(11, 8)])
    server.step(1, 16, 26)
    server.left(11, 27, reason="abort", last_step=1)
    server.answered(1, 30, output=1, reason="stop")
    request = only(server.assembler.close())
    assert (request.finish_reason, request.status, request.output_tokens) == ("stop", RequestStatus.OK, 1)
    assert (request.first_step, request.last_step) == (0, 1)


def test_sequences_in_the_core_are_one_request(server: Server) -> None:
    server.asked(1, "r", 0, settings={"n": 2})
    server.blob(server.frontend, layout.DETAIL, 1, 1, children=["0_r", "1_r"])
    for ident, name in ((11, "0_r"), (12, "1_r")):
        server.received(ident, name, 4)
    server.step(0, 6, 16, joined=(11,), scheduled=[(11, 8)])
    server.step(1, 16, 26, joined=(12,), scheduled=[(12, 5)])
    server.step(2, 26, 36, left=(11,))
    server.step(3, 36, 46, left=(12,))
    server.left(11, 36, cached=0)
    server.left(12, 46, cached=3)
    rows = [{"prompt": 8, "padding": 0, "output": 3, "reason": "length"}] * 2
    server.blob(server.frontend, layout.FINISHED, 1, 50, reason="length", sequences=rows)
    recording = server.assembler.close()
    request = only(recording)
    assert (request.first_token_ns, request.last_token_ns) == (EPOCH + 16 * MS, EPOCH + 46 * MS)
    assert (request.first_step, request.last_step, request.yields) == (0, 3, ())
    assert request.prefill_chunks == (StepCount(0, 8), StepCount(1, 5))
    assert (len(request.sequences), request.cached_tokens, request.settings["n"]) == (2, 3, 2)
    (steps,) = recording.steps
    assert steps.new_tokens is not None
    assert steps.new_tokens.tolist() == [1, 2, 2, 1]


def test_killed_the_recording_holds_what_was_committed(server: Server) -> None:
    server.serve()
    request = only(server.assembler.close())
    assert (request.status, request.finished_ns) == (RequestStatus.CUT_OFF, None)
    assert request.last_token_ns == EPOCH + 26 * MS


def test_names_are_forgotten_with_their_requests(server: Server) -> None:
    for round_ in range(3):
        server.serve(1 + round_, 11 + round_)
        server.answered(1 + round_, 30, output=2)
        assert len(server.take(times=3)) == 1
    server.asked(4, "n", 0)
    server.blob(server.frontend, layout.DETAIL, 4, 1, children=["0_n", "1_n"])
    server.answered(4, 5, output=0)
    assert len(server.take(times=3)) == 1
    joins = server.assembler._joins
    assert (joins._frontends, joins._cores) == ({}, {})


def test_evicted_it_gives_nothing_until_it_is_back(server: Server) -> None:
    server.asked(1, "r", 0)
    server.received(11, "r", 4)
    server.received(12, "other", 4)
    server.step(0, 6, 16, joined=(11, 12), scheduled=[(11, 8), (12, 8)])
    server.mark(11, layout.PREEMPTED, 16)
    server.step(1, 16, 26, left=(11,), scheduled=[(11, 0)], yielded=[(11, 0)])
    server.step(2, 26, 36)
    server.mark(11, layout.RESUMED, 36)
    server.step(3, 36, 46, joined=(11,), left=(11, 12), scheduled=[(11, 9)])
    for ident in (11, 12):
        server.left(ident, 46)
    server.answered(1, 50, output=2)
    recording = server.assembler.close()
    request = next(r for r in recording.requests if r.external_id == "r")
    assert request.preemptions == (Interval(EPOCH + 16 * MS, EPOCH + 36 * MS),)
    assert request.yields == (StepCount(1, 0), StepCount(2, 0))
    assert (request.first_step, request.last_step) == (0, 3)
    (steps,) = recording.steps
    assert steps.running is not None
    assert steps.new_tokens is not None
    assert steps.computed_tokens is not None
    assert steps.running.tolist() == [2, 1, 1, 2]
    assert steps.new_tokens.tolist() == [2, 1, 1, 2]
    assert steps.computed_tokens.tolist() == [16, 1, 1, 10]


def test_queue_and_blocks_hold_until_they_change(server: Server) -> None:
    def state(index: int, ms: float, waiting: int, used: int, reason: Wait) -> None:
        code = layout.HEAD_REASON_CODE[reason.value]
        payload = layout.encode_batch_state(STREAM, index, int(ms * MS), 1, waiting, used, 100, code)
        server.assembler.feed(server.core, [(layout.BATCH_STATE, payload)])

    server.received(11, "r", 4)
    state(0, 5, 9, 9, Wait.GRAMMAR)  # for an empty step, which is none
    state(0, 6, 0, 2, Wait.NONE)
    for index in range(4):
        begin = 6 + 10 * index
        changes = {"joined": (11,)} if index == 0 else {"left": (11,)} if index == 3 else {}
        server.step(index, begin, begin + 10, **changes)
    state(2, 26, 3, 5, Wait.SLOTS)
    server.left(11, 46)
    (steps,) = server.assembler.close().steps
    assert steps.waiting is not None
    assert steps.kv_blocks is not None
    assert steps.waits is not None
    assert steps.waiting.tolist() == [0, 0, 3, 3]
    assert steps.kv_blocks.tolist() == [2, 2, 5, 5]
    assert [list(Wait)[code] for code in steps.waits] == [Wait.NONE, Wait.NONE, Wait.SLOTS, Wait.SLOTS]


def test_the_reasons_to_wait_are_the_same_on_both_sides_of_the_spool() -> None:
    assert [wait.value for wait in Wait] == list(layout.HEAD_REASONS)


def test_the_beams_of_a_search_are_one_request(server: Server) -> None:
    server.asked(1, "0", 0, mode="beam", settings={"beam_width": 2, "max_tokens": 2})
    asked = [(11, "0", 4), (12, "1", 30), (13, "2", 31)]
    for ident, name, ms in asked:
        server.blob(server.frontend, layout.DETAIL, 1, ms, child=name)
        server.received(ident, name, ms, mode="greedy", settings={"max_tokens": 1})
        server.mark(ident, layout.SCHEDULED, ms + 2)
    server.step(0, 6, 16, joined=(11,), left=(11,), scheduled=[(11, 8)])
    server.step(1, 33, 43, joined=(12, 13), left=(12, 13))
    for ident, _, ms in asked:
        server.left(ident, ms + 12, cached=ident - 11)
    assert server.take(times=20) == []
    rows = [{"prompt": 8, "padding": 0, "output": 2, "reason": "length"}] * 2
    server.blob(server.frontend, layout.FINISHED, 1, 50, reason="length", sequences=rows)
    request = only(server.take(times=3))
    assert (request.mode, request.settings["beam_width"], request.settings["max_tokens"]) == ("beam", 2, 2)
    assert (request.first_step, request.last_step, request.longest_output) == (0, 1, 2)
    assert (request.prefill_chunks, request.cached_tokens) == ((StepCount(0, 8),), 0)
    assert request.last_token_ns == EPOCH + 43 * MS
    assert server.assembler.close().requests == ()


def test_a_process_that_ends_in_the_midst_of_requests_is_named_and_what_ended_before_it(
    server: Server,
) -> None:
    server.core = replace(server.core, pid=7)
    server.asked(1, "r", 0)
    server.received(11, "r", 4)
    worker, other = (SegmentInfo(f"00000000000000b{n}", 3 + n, 1, 0, 0, 0, EPOCH) for n in range(2))
    for info, role in ((server.core, "engine core"), (worker, "worker"), (other, "worker")):
        facts = layout.encode_blob(0, layout.ENGINE, 0, {"engine": "vllm", "role": role})
        server.assembler.feed(info, [(layout.FACTS, facts)])
    server.assembler.processes_ended([worker.process])
    server.assembler.processes_ended([server.core.process, other.process])
    server.answered(1, 30, output=0, reason="error", error="EngineDeadError")
    server.assembler.processes_ended([server.frontend.process])
    recording = server.assembler.close()
    assert only(recording).status is RequestStatus.FAILED
    (defect,) = recording.defects
    assert defect.defect == (
        "engine core (process 7) ended in the midst of 1 request; worker (process 3) had ended before;"
        " worker (process 4) ended with it"
    )


def test_a_process_that_ends_with_nothing_left_to_do_is_no_defect(server: Server) -> None:
    server.serve()
    server.answered(1, 30, output=2)
    server.assembler.processes_ended([server.core.process, server.frontend.process])
    assert server.assembler.close().defects == ()


def test_tokens_that_the_user_did_not_get_are_discarded_by_reason() -> None:
    server = Server()
    server.serve()
    server.answered(1, 31, 1, reason="stop")
    server.blob(server.core, layout.DETAIL, 11, 32, discarded={layout.ABORTED: 2})
    (request,) = server.assembler.close().requests
    assert request.output_tokens == 1
    assert request.discarded_tokens == {layout.STOP_STRING: 3}


def test_positions_read_again_after_a_preemption() -> None:
    server = Server()
    server.received(11, "r", 1)
    server.step(0, 6, 16, joined=(11,), scheduled=[(11, 8)])
    server.step(1, 16, 26, left=(11,), scheduled=[(11, 0)], yielded=[(11, 0)])
    server.step(2, 26, 36, joined=(11,), scheduled=[(11, 6)], yielded=[(11, 0)])
    server.step(3, 36, 46, scheduled=[(11, 4)])
    server.step(4, 46, 56, left=(11,))
    server.left(11, 56)
    (request,) = server.assembler.close().requests
    assert request.recomputed == (StepCount(2, 6), StepCount(3, 4))
    assert request.prefill_chunks == (StepCount(0, 8),)


def test_what_the_workers_tell_belongs_to_the_core_s_steps_and_model() -> None:
    server = Server()
    worker = SegmentInfo("00000000000000d0", 3, 2, 0, 0, 0, EPOCH)
    stranger = SegmentInfo("00000000000000e0", 5, 4, 0, 0, 0, EPOCH)
    weights = layout.encode_blob(0, layout.ENGINE, 0, {"worker_parameters": 5, "worker_weight_bytes": 10})
    shape = layout.encode_blob(1, layout.MODEL, 0, {"layers": 2})
    server.assembler.feed(server.core, [(layout.FACTS, shape)])
    for info in (worker, stranger):
        told = [
            layout.encode_execution(number, tokens, 0, 1, info.pid) for number, tokens in ((7, 8), (8, 9))
        ]
        server.assembler.feed(info, [(layout.FACTS, weights), *((layout.EXECUTION, one) for one in told)])
    server.received(11, "r", 1)
    server.step(0, 6, 16, joined=(11,), scheduled=[(11, 8)], number=7)
    server.step(1, 16, 26, left=(11,), number=8)
    server.left(11, 26)
    recorded = server.assembler.close()
    (steps,) = recorded.steps
    assert steps.device_ns is not None
    assert steps.device_ns.tolist() == [worker.pid, -1]  # of another number of tokens: not this step
    (model,) = recorded.models.values()
    assert (model.parameters, model.weight_bytes) == (5, 10)


def test_a_stage_is_of_its_process() -> None:
    server = Server()
    server.blob(server.core, layout.STAGE, 0, 3, name="model-load", end=int(9 * MS))
    (stage,) = server.assembler.close().stages
    assert (stage.process, stage.name) == (server.core.process, "model-load")
    assert stage.end_ns - stage.begin_ns == 6 * MS


def test_of_steps_with_the_same_number_times_tell_which_one_a_worker_executed() -> None:
    """A process may have one engine after the other, and a long run counts beyond what a step keeps."""
    server = Server()
    for number, begin, took in ((7, 8, 70), (8, 18, 80), (7, 28, 71)):
        told = layout.encode_execution(number, 8, begin * MS, (begin + 5) * MS, took)
        server.assembler.feed(server.core, [(layout.EXECUTION, told)])
    server.received(11, "r", 1)
    server.step(0, 6, 16, joined=(11,), scheduled=[(11, 8)], number=7)
    server.step(1, 16, 26, scheduled=[(11, 8)], number=8)
    server.step(2, 26, 36, scheduled=[(11, 8)], left=(11,), number=7)
    server.left(11, 36)
    (steps,) = server.assembler.close().steps
    assert steps.device_ns is not None
    assert steps.device_ns.tolist() == [70, 80, 71]
