"""The OpenAI server on the real engine: one request is one trace across its processes."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from phasetrace.analyze.breakdown import breakdown
from phasetrace.model import Phase, Recording, Request, RequestStatus
from phasetrace_agent import layout
from tests.integrations.agent import Run
from tests.integrations.vllm.engine import recording, serve

pytestmark = pytest.mark.slow

PLAIN, SEVERAL, STOPPED, GRAMMAR, CHAT, BEAMS = range(1, 7)
CLIENTS = range(0x10, 0x10 + 12)


def traceparent(number: int) -> str:
    """The client's span of this number."""
    return f"00-{number:032x}-{number:016x}-01"


def await_ends(run: Run) -> None:
    """Wait till frontend and core have recorded the end of all that they have recorded the arrival of."""
    for _ in range(600):
        if run.count(layout.ARRIVED) == run.count(layout.FINISHED, layout.ENDED):
            return
        time.sleep(0.1)
    raise AssertionError("a request did not end")


@dataclass
class Seen:
    """What clients saw, and what was recorded."""

    answers: dict[int, tuple[int, Any, int]] = field(default_factory=dict)
    recorded: Recording = field(default_factory=Recording)

    def request(self, number: int) -> Request:
        """The request under this client's span."""
        (request,) = (r for r in self.recorded.requests if r.trace_id == f"{number:032x}")
        assert request.parent_span_id == f"{number:016x}"
        return request


@pytest.fixture(scope="module")
def seen(vllm_python: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """One server for all these tests."""
    run, seen = Run(tmp_path_factory.mktemp("server"), vllm_python), Seen()
    with serve(run, tiny_model) as server:
        said = "The market opened"
        ask = server.complete
        seen.answers[PLAIN] = ask(said, traceparent(PLAIN), max_tokens=20)
        seen.answers[SEVERAL] = ask(said, traceparent(SEVERAL), max_tokens=8, n=3, temperature=1)
        stops = {"stop": ["a", "e", "o", "t"], "temperature": 1, "max_tokens": 500}
        seen.answers[STOPPED] = ask(said, traceparent(STOPPED), **stops)
        grammar = {"structured_outputs": {"regex": "[ab]{8,12}"}, "max_tokens": 8}
        seen.answers[GRAMMAR] = ask(said, traceparent(GRAMMAR), **grammar)
        chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 6, "stream": True}
        seen.answers[CHAT] = server.post("/v1/chat/completions", chat, traceparent(CHAT))
        search = {"use_beam_search": True, "n": 2, "max_tokens": 6}
        seen.answers[BEAMS] = ask(said, traceparent(BEAMS), **search)
        assert ask("x " * 3000, max_tokens=5)[0] == 400

        def client(number: int) -> tuple[int, Any, int]:
            tokens = 5 + number % 7
            return ask("The river " * number, traceparent(number), max_tokens=tokens, stream=True)

        with ThreadPoolExecutor(len(CLIENTS)) as pool:
            seen.answers.update(zip(CLIENTS, pool.map(client, CLIENTS), strict=True))
        server.leave(prompt=said, max_tokens=900)
        await_ends(run)  # once the server has noticed
    seen.recorded = recording(run)
    yield seen


def test_every_process_is_covered_and_nothing_failed(seen: Seen) -> None:
    assert len(seen.recorded.processes) >= 3  # server, core, worker
    for process in seen.recorded.processes:
        assert (process.troubles, process.lost_records) == ((), 0)
        assert not process.refused
    core = next(process for process in seen.recorded.processes if "max_num_seqs" in process.facts)
    assert core.facts["enforce_eager"] is True
    assert core.facts["num_gpu_blocks"]
    (model,) = {request.model for request in seen.recorded.requests}
    assert seen.recorded.models[model or ""].weight_bytes
    stages = {(stage.process, stage.name) for stage in seen.recorded.stages}
    assert {name for _, name in stages} >= {"engine-start", "model-load", "warm-up"}
    assert len({process for process, _ in stages}) == 2  # the core and its worker


def test_what_a_step_took_in_the_worker_is_known_in_the_core(seen: Seen) -> None:
    for steps in seen.recorded.steps:
        assert steps.device_ns is not None
        assert (steps.device_ns >= 0).all()
        assert (steps.device_ns <= steps.end_ns - steps.begin_ns).mean() > 0.95


def test_one_request_is_one_trace(seen: Seen) -> None:
    status, answer, took = seen.answers[PLAIN]
    request = seen.request(PLAIN)
    assert status == 200
    assert request.output_tokens == answer["usage"]["completion_tokens"] == 20
    assert request.prompt_tokens == answer["usage"]["prompt_tokens"]
    assert request.finished_ns is not None
    assert request.finished_ns - request.arrival_ns <= took
    assert (request.engine, request.operation, request.finish_reason) == ("vllm", "text_completion", "length")
    assert request.tokenize_ns is not None


def test_clients_at_once_are_not_mixed_up(seen: Seen) -> None:
    processes = set()
    for number in CLIENTS:
        status, _, took = seen.answers[number]
        request = seen.request(number)
        assert status == 200
        assert request.output_tokens == 5 + number % 7
        assert request.finished_ns is not None
        assert request.finished_ns - request.arrival_ns <= took
        processes.add(request.process)
    assert len(processes) == 1


def test_several_sequences_are_one_request(seen: Seen) -> None:
    request = seen.request(SEVERAL)
    assert [row.output_tokens for row in request.sequences] == [8, 8, 8]
    assert request.settings["n"] == 3


def test_a_stop_string_is_no_abort(seen: Seen) -> None:
    status, answer, _ = seen.answers[STOPPED]
    assert status == 200
    request = seen.request(STOPPED)
    assert (request.finish_reason, request.status) == ("stop", RequestStatus.OK)
    assert request.output_tokens == answer["usage"]["completion_tokens"]


def test_structured_output_and_chat(seen: Seen) -> None:
    assert seen.request(GRAMMAR).settings["structured"] is True
    chat = seen.request(CHAT)
    assert (chat.operation, chat.output_tokens) == ("chat", 6)


def test_a_beam_search_is_one_request(seen: Seen) -> None:
    status, answer, _ = seen.answers[BEAMS]
    assert status == 200
    request = seen.request(BEAMS)
    assert [row.output_tokens for row in request.sequences] == [6, 6]
    assert request.prompt_tokens == 2 * answer["usage"]["prompt_tokens"]
    assert (request.mode, request.settings["beam_width"]) == ("beam", 2)
    assert request.first_step is not None and request.last_step is not None
    idle = sum(count.tokens == 0 for count in request.yields)
    # One beam asks for its first token, then two ask one after the other: in one step or in two
    assert 6 <= request.last_step - request.first_step + 1 - idle <= 11


def test_a_client_that_goes_away(seen: Seen) -> None:
    (request,) = (r for r in seen.recorded.requests if r.finish_reason == "abort")
    assert request.status is RequestStatus.FAILED
    assert 0 < (request.output_tokens or 0) < 900


def test_a_refused_request_is_none(seen: Seen) -> None:
    assert len(seen.recorded.requests) == 6 + len(CLIENTS) + 1


def test_all_time_is_accounted_for(seen: Seen) -> None:
    made = breakdown(seen.recorded)
    assert (len(made.requests), len(made.failed)) == (6 + len(CLIENTS), 1)
    for request in made.requests:
        assert sum(phase.ns for phase in request.phases) == request.e2e_ns
        assert request.phase_ns(Phase.UNATTRIBUTED) == 0
