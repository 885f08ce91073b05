"""Calls, exchanges and what is said of their requests, without vLLM and without a server."""

import asyncio
import gc
import inspect
import weakref
from contextvars import copy_context
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_agent import layout
from phasetrace_agent.hooking import wrap
from phasetrace_vllm import calls, extract, frontend, http
from phasetrace_vllm.calls import current
from phasetrace_vllm.http import Exchanges, put_around
from tests.integrations.vllm.fakes import Heard, named

TRACEPARENT = ("00-" + "a" * 32 + "-" + "b" * 16 + "-01").encode()


class Detokenizer:
    """How much text a request has given."""

    def num_output_tokens(self) -> int:
        return 5


class OutputProcessor:
    """What vLLM's class of this name does with requests, in short."""

    def __init__(self) -> None:
        self.request_states: dict[str, Any] = {}

    def add_request(
        self, request: Any, prompt: Any, parent_req: Any = None, request_index: int = 0, queue: Any = None
    ) -> None:
        if request.request_id in self.request_states:  # no more of a prompt will come that was streamed
            self._finish_request(self.request_states[request.request_id])
            return
        self.request_states[request.request_id] = SimpleNamespace(
            request_id=request.request_id,
            prompt_len=3,
            detokenizer=Detokenizer(),
            queue=queue,
        )

    def process_outputs(self, engine_core_outputs: Any) -> None:
        for output in engine_core_outputs:
            state = self.request_states[output.request_id]
            if state.queue is not None:
                state.queue.output = output.text
            if output.last:
                self._finish_request(req_state=state)

    def _finish_request(self, req_state: Any) -> None:
        del self.request_states[req_state.request_id]

    def abort_requests(self, request_ids: Any, internal: bool = False) -> list[str]:
        return [name for name in request_ids if self.request_states.pop(name, None)]

    def propagate_error(self, e: Exception) -> None: ...


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def processor(heard: Heard) -> Any:
    """A hooked processor of a class of its own."""
    kind = type("OutputProcessor", (), dict(vars(OutputProcessor)))
    assert frontend.hook_processor(heard, SimpleNamespace(OutputProcessor=kind)) == []
    return kind()


def asked(name: str, pooling: bool = False, headers: Any = None) -> Any:
    params = None if pooling else SimpleNamespace()
    return SimpleNamespace(request_id=name, sampling_params=params, trace_headers=headers)


def done(name: str, reason: str | None = "LENGTH") -> Any:
    why = None if reason is None else named(reason)
    return SimpleNamespace(request_id=name, finish_reason=why, text="all of it", last=True)


def wrote(name: str, text: str | None) -> Any:
    """An output in the midst of an answer, of which the user gets this text."""
    return SimpleNamespace(request_id=name, finish_reason=None, text=text, last=False)


def exchange(
    app: Any, heard: Heard, messages: list[Any], headers: Any = (), path: str = "/v1/chat/completions"
) -> list[Any]:
    """One HTTP exchange with `app`, to whom the client says these messages; what it is sent."""
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": path, "headers": headers}
    asyncio.run(Exchanges(app, heard)(scope, receive, send))
    return sent


def test_a_request_ends_with_its_exchange(heard: Heard, processor: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        processor.add_request(asked("r"), None)
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        processor.process_outputs([done("r")])
        assert heard.of("finished") == []
        await send({"type": "http.response.body", "body": b"last", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    sent = exchange(app, heard, [{"type": "http.request"}], [(b"traceparent", TRACEPARENT)])
    assert len(sent) == 4
    ((ident, arrival, data),) = heard.of("arrived")
    assert data["parent"]["trace"] == "a" * 32
    assert (data["operation"], data["side"], data["external"]) == ("chat", "frontend", "r")
    marks = heard.of("mark")
    assert [mark[:2] for mark in marks] == [(ident, layout.HANDED_OVER)] * 2
    ((_, finished, told),) = heard.of("finished")
    assert arrival <= marks[0][2] <= finished <= marks[1][2]
    assert told["sequences"] == [{"prompt": 3, "padding": 0, "reason": "length", "output": 5}]
    assert "disconnected" not in told
    assert current.get() is None


def test_a_client_that_goes_away(heard: Heard, processor: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        processor.add_request(asked("r"), None)
        await receive()
        processor.abort_requests(["r"])
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        exchange(app, heard, [{"type": "http.disconnect"}])
    ((_, _, told),) = heard.of("finished")
    assert (told["reason"], told["disconnected"]) == ("abort", True)


def test_an_abort_after_the_exchange_is_said_at_once(heard: Heard, processor: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        processor.add_request(asked("r"), None)

    exchange(app, heard, [])
    assert heard.of("finished") == []
    processor.abort_requests(["r"])
    assert len(heard.of("finished")) == 1


def test_whoever_waits_in_this_process_is_handed_the_first_output_once_there_is_one(
    heard: Heard, processor: Any
) -> None:
    for name in ("streams", "waits"):
        processor.add_request(asked(name), None, None, 0, SimpleNamespace(output=None))
    processor.process_outputs([wrote("streams", None), wrote("waits", None)])
    assert heard.of("mark") == []
    processor.process_outputs([wrote("streams", "first"), wrote("waits", None)])
    processor.process_outputs([wrote("streams", "second"), wrote("waits", None)])
    ((streaming, point, first),) = heard.of("mark")
    assert (streaming, point) == (1, layout.HANDED_OVER)
    processor.process_outputs([done("streams"), done("waits")])
    assert [mark[0] for mark in heard.of("mark")] == [1, 2]
    assert [finished[0] for finished in heard.of("finished")] == [1, 2]
    assert first < heard.of("mark")[1][2] <= heard.of("finished")[1][1]


def test_outputs_that_nobody_will_hear_of_are_let_go(
    heard: Heard, processor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontend.OUTPUT, "on", True)

    class Queue:
        output = None

    queue = Queue()
    seen = weakref.ref(queue)
    processor.add_request(asked("r"), None, None, 0, queue)
    frontend.OUTPUT.on = False
    del queue
    processor.process_outputs([wrote("r", None)])
    del processor.request_states["r"]
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize(("what", "operation"), [("chat", "chat"), ("cmpl", None)])
def test_a_conversation_is_a_chat_by_whatever_path_it_came(
    heard: Heard, processor: Any, what: str, operation: str | None
) -> None:
    class BaseRenderer:
        async def render_cmpl_async(self, prompts: Any) -> Any:
            return prompts

        async def render_chat_async(self, conversations: Any) -> Any:
            return conversations

    frontend.hook_renderer(heard, SimpleNamespace(BaseRenderer=BaseRenderer))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert await getattr(BaseRenderer(), f"render_{what}_async")("tokens") == "tokens"
        processor.add_request(asked("r"), None)

    exchange(app, heard, [], path="/v1/responses")
    ((_, _, data),) = heard.of("arrived")
    assert data.get("operation") == operation
    assert len(data["tokenize"]) == 2


def test_several_sequences_are_one_request(heard: Heard, processor: Any) -> None:
    group = SimpleNamespace(request_id="r", sampling_params=SimpleNamespace(n=2))
    for row in range(2):
        processor.add_request(asked(f"{row}_r"), None, group, row)
    processor.process_outputs([done("1_r")])
    assert heard.of("finished") == []
    processor.process_outputs([done("0_r", None)])
    ((ident, _, data),) = heard.of("arrived")
    assert (data["external"], data["settings"]) == ("r", {"n": 2})
    assert heard.of("detail") == [(ident, {"children": ["0_r", "1_r"]})]
    ((_, _, told),) = heard.of("finished")
    # Where the core names no reason, a stop string was found
    assert [row["reason"] for row in told["sequences"]] == ["length", "stop"]


def test_an_exchange_and_its_requests_let_go_of_each_other(heard: Heard, processor: Any) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(current.get())
        processor.add_request(asked("r"), None)
        processor.process_outputs([done("r")])

    exchange(app, heard, [])
    assert seen[0].entries == []
    assert len(heard.of("finished")) == 1


def test_pooling_requests_are_left_alone(heard: Heard, processor: Any) -> None:
    processor.add_request(asked("p", pooling=True), None)
    processor.process_outputs([done("p")])
    assert heard.said == []


@pytest.mark.parametrize(
    ("reason", "failure"), [("ABORT", "aborted"), ("ERROR", "vllm"), ("LENGTH", None), ("STOP", None)]
)
def test_what_the_engine_gives_up_has_failed(
    heard: Heard, processor: Any, reason: str, failure: str | None
) -> None:
    """It aborts all requests when it is paused, or is about to end."""
    processor.add_request(asked("r"), None)
    processor.process_outputs([done("r", reason)])
    ((_, _, told),) = heard.of("finished")
    assert (told["reason"], told.get("error")) == (reason.lower(), failure)


def test_when_the_engine_dies_so_do_its_requests(heard: Heard, processor: Any) -> None:
    processor.add_request(asked("r"), None)
    processor.propagate_error(RuntimeError("secret"))
    ((_, _, told),) = heard.of("finished")
    assert (told["error"], told["reason"]) == ("RuntimeError", "error")


def test_calls_by_keyword_are_recorded_like_others(heard: Heard, processor: Any) -> None:
    group = SimpleNamespace(request_id="g", sampling_params=SimpleNamespace(n=1))
    processor.add_request(request=asked("0_g"), prompt=None, parent_req=group)
    processor.process_outputs(engine_core_outputs=[done("0_g")])
    processor.add_request(request=asked("b"), prompt=None)
    processor.abort_requests(request_ids=["b"], internal=True)
    processor.add_request(request=asked("c"), prompt=None)
    processor.propagate_error(e=RuntimeError("secret"))
    assert [data["external"] for _, _, data in heard.of("arrived")] == ["g", "b", "c"]
    told = [(data["reason"], data.get("error")) for _, _, data in heard.of("finished")]
    assert told == [("length", None), ("abort", "aborted"), ("error", "RuntimeError")]


def test_states_that_cannot_be_copied_are_no_concern_of_the_application(
    heard: Heard, processor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Uncopied(dict[str, Any]):
        def copy(self) -> Any:
            raise RuntimeError

    monkeypatch.setattr(frontend.OUTPUT, "on", True)
    processor.request_states = Uncopied()
    processor.add_request(asked("r"), None)
    assert processor.abort_requests(["r"]) == ["r"]
    assert not frontend.OUTPUT.on


def test_no_state_is_kept_once_outputs_are_given_up(
    heard: Heard, processor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frontend.OUTPUT, "on", True)
    seen: list[Any] = []

    class Outputs(list[Any]):
        def __iter__(self) -> Any:
            for output in super().__iter__():
                seen.append(weakref.ref(processor.request_states[output.request_id].detokenizer))
                yield output
            frontend.OUTPUT.on = False  # in the midst of a step

    processor.add_request(asked("r"), None)
    processor.process_outputs(Outputs([done("r")]))
    gc.collect()
    assert [state() for state in seen] == [None]


def test_a_streamed_prompt_that_ends_after_its_answer_ends_the_request_at_once(
    heard: Heard, processor: Any
) -> None:
    processor.add_request(asked("r"), None)
    processor.process_outputs([wrote("r", "all of it")])
    processor.add_request(asked("r"), None)
    ((_, _, told),) = heard.of("finished")
    assert told["reason"] == "stop"
    assert len(heard.of("arrived")) == 1


def test_what_is_wrapped_behaves_as_before(heard: Heard, processor: Any) -> None:
    plain = inspect.signature(OutputProcessor.add_request)
    assert inspect.signature(type(processor).add_request) == plain

    class AsyncLLM:
        async def add_request(self, request_id: str, trace_headers: Any = None) -> Any:
            call = current.get()
            return None if call is None else call.parent

    frontend.hook_async(heard, SimpleNamespace(AsyncLLM=AsyncLLM))
    assert inspect.iscoroutinefunction(AsyncLLM.add_request)
    headers = {"traceparent": TRACEPARENT.decode()}
    for asked_for in (
        AsyncLLM().add_request("r", trace_headers=headers),
        AsyncLLM().add_request("r", headers),
    ):
        assert asyncio.run(asked_for)["span"] == "b" * 16
    assert current.get() is None


def test_the_span_that_vllm_makes_itself_is_a_child_where_it_would_be_a_second_root(
    heard: Heard, processor: Any
) -> None:
    processor.tracing_enabled = True
    processor.add_request(root := asked("root"), None)
    processor.add_request(child := asked("child", headers={"traceparent": TRACEPARENT.decode()}), None)
    group = SimpleNamespace(request_id="g", sampling_params=SimpleNamespace(n=2))
    processor.add_request(rows := asked("0_g"), None, group)
    processor.tracing_enabled = False
    processor.add_request(untraced := asked("untraced"), None)
    arrived = {data["external"]: data for _, _, data in heard.of("arrived")}
    for request, name in ((root, "root"), (rows, "g")):
        own = arrived[name]["own"]
        assert request.trace_headers == {"traceparent": f"00-{own['trace']}-{own['span']}-01"}
        assert extract.parent(request.trace_headers) is not None
    assert child.trace_headers == {"traceparent": TRACEPARENT.decode()}
    assert untraced.trace_headers is None
    assert "own" not in arrived["child"] and "own" not in arrived["untraced"]


def test_all_prompts_of_a_call_arrive_when_it_begins(heard: Heard, processor: Any) -> None:
    class LLM:
        def generate(self, prompts: list[str]) -> None:
            for prompt in prompts:
                processor.add_request(asked(prompt), None)

    assert wrap(LLM, "generate", frontend.around_call)
    LLM().generate(["a", "b"])
    first, second = (arrival[1] for arrival in heard.of("arrived"))
    assert first == second


def test_a_stack_that_is_built_is_wrapped_and_an_unbuilt_one_added_to(heard: Heard) -> None:
    added: list[Any] = []
    fresh = SimpleNamespace(middleware_stack=None, add_middleware=lambda kind, **kw: added.append(kind))
    put_around(fresh, heard)
    assert added == [Exchanges]
    inner = object()
    built = SimpleNamespace(middleware_stack=inner)
    put_around(built, heard)
    assert built.middleware_stack.app is inner


def test_other_than_http_passes_through(heard: Heard) -> None:
    seen: list[Any] = []

    async def app(*args: Any) -> None:
        seen.append(args)

    asyncio.run(Exchanges(app, heard)({"type": "lifespan"}, "receive", "send"))
    assert seen == [({"type": "lifespan"}, "receive", "send")]
    assert calls.current.get() is None


class Parked:
    """Never ready."""

    def __await__(self) -> Any:
        yield


def test_a_coroutine_that_is_given_up_may_be_closed_elsewhere(heard: Heard) -> None:
    async def app(*args: Any) -> None:
        await Parked()

    class AsyncLLM:
        async def add_request(self) -> None:
            await Parked()

    frontend.hook_async(heard, SimpleNamespace(AsyncLLM=AsyncLLM))
    scope = {"type": "http", "path": "/"}
    for given_up in (Exchanges(app, heard)(scope, None, None), AsyncLLM().add_request()):
        copy_context().run(given_up.send, None)
        given_up.close()
    assert calls.current.get() is None


def test_messages_of_another_make_pass_through(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        monkeypatch.setattr(http.EXCHANGE, "on", True)
        got.append(await receive())
        assert not http.EXCHANGE.on
        monkeypatch.setattr(http.EXCHANGE, "on", True)
        await send(None)
        assert not http.EXCHANGE.on

    assert exchange(app, heard, ["odd"]) == [None]
    assert got == ["odd"]


def test_a_scope_of_another_make_passes_through(heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http.EXCHANGE, "on", True)
    seen: list[Any] = []

    async def app(*args: Any) -> None:
        seen.append(args)

    asyncio.run(Exchanges(app, heard)({}, "receive", "send"))
    assert seen == [({}, "receive", "send")]
