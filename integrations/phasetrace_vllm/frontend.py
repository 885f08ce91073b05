"""What is wrapped in the process that takes requests: where they are registered, rendered and handed back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock, layout
from phasetrace_agent.hooking import Hook, argument, wrap
from phasetrace_agent.recorder import Recorder

from . import extract
from .around_calls import around_add_async, around_call, around_chat, around_render, around_render_async
from .arrivals import Arrivals
from .calls import Entry
from .facts import ENGINE_KEY
from .http import EXCHANGE, put_around

Function = Callable[..., Any]
now = clock.now

REGISTER = Hook("vllm.register")
OUTPUT = Hook("vllm.output")

_PROCESSOR = ("add_request", "process_outputs", "abort_requests", "_finish_request")


def hook_processor(recorder: Recorder, module: Any) -> list[str]:
    """Wrap `OutputProcessor`, which every frontend registers its requests with."""
    processor = module.OutputProcessor
    missing = [name for name in _PROCESSOR if name not in vars(processor)]
    if missing:
        return missing
    frontend = Frontend(recorder)
    wrap(processor, "add_request", frontend.around_register)
    wrap(processor, "process_outputs", frontend.around_outputs)
    wrap(processor, "abort_requests", frontend.around_abort)
    wrap(processor, "propagate_error", frontend.around_error)
    wrap(processor, "_finish_request", frontend.around_finish)
    return []


def hook_async(recorder: Recorder, module: Any) -> list[str]:
    """Wrap `AsyncLLM.add_request`, which drops the `traceparent` when vLLM's tracing is off."""
    wrap(module.AsyncLLM, "add_request", around_add_async)
    return []


def hook_offline(recorder: Recorder, module: Any) -> list[str]:
    """Wrap the calls of `LLM`: all prompts of one are handed over when it begins."""
    for name in ("generate", "enqueue"):
        wrap(module.LLM, name, around_call)
    for name in ("chat", "enqueue_chat"):
        wrap(module.LLM, name, around_chat)
    return []


def hook_engine(recorder: Recorder, module: Any) -> list[str]:
    """Wrap `LLMEngine.add_request`, for those who drive the engine themselves."""
    wrap(module.LLMEngine, "add_request", around_call)
    return []


def hook_renderer(recorder: Recorder, module: Any) -> list[str]:
    """Wrap where prompts become tokens."""
    for name, chat in (("render_cmpl", False), ("render_chat", True)):  # whatever the path of its API
        wrap(module.BaseRenderer, name, around_render(chat))
        wrap(module.BaseRenderer, name + "_async", around_render_async(chat))
    return []


def hook_app(recorder: Recorder, module: Any) -> list[str]:
    """Put our middleware around the application that `build_app` makes."""

    def around_build(original: Function) -> Function:
        def build_app(*args: Any, **kwargs: Any) -> Any:
            app = original(*args, **kwargs)
            try:
                put_around(app, recorder)
                recorder.facts(layout.ENGINE, ENGINE_KEY, {"engine": "vllm", "role": "API server"})
            except Exception as error:
                EXCHANGE.fail(error)
            return app

        return build_app

    wrap(module, "build_app", around_build)
    return []


# ---- requests


class Frontend:
    """The requests of this process that the user waits for, by the engine core's names of them."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._arrivals = Arrivals(recorder)
        self._entries: dict[str, Entry] = {}
        self._finishing: list[tuple[str, Any]] = []
        self._unheard: dict[str, Any] = {}  # queues that nothing was put into yet, of those who await them

    def around_register(self, original: Function) -> Function:
        """A request is known; next it is sent to the engine core."""

        def add_request(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            begin = now()
            result = original(processor, *args, **kwargs)
            if REGISTER.on and self.recorder.enabled:
                try:
                    request = argument(args, kwargs, 0, "request")
                    traced = getattr(processor, "tracing_enabled", False)
                    self._registered(request, argument(args, kwargs, 2, "parent_req"), traced)
                    self._awaited(request.request_id, argument(args, kwargs, 4, "queue"))
                except Exception as error:
                    REGISTER.fail(error)
            if self._finishing:  # a prompt that was streamed has ended, and its answer had before
                self._let_go((), begin)
            return result

        return add_request

    def _registered(self, request: Any, group: Any, traced: bool) -> None:
        name = request.request_id
        if request.sampling_params is None or name in self._entries:
            return  # pooling, or more of a prompt that is streamed
        rootless = traced and not request.trace_headers
        entry = self._entries[name] = self._arrivals.entry_of(name, group, rootless)
        if rootless and entry.own is not None:
            # vLLM makes a span of its own of it, which would be a second root
            request.trace_headers = {"traceparent": extract.as_traceparent(entry.own)}

    def _awaited(self, name: str, queue: Any) -> None:
        """Somebody takes outputs from a queue; over HTTP they are handed over later, as bytes."""
        entry = self._entries.get(name)
        if queue is not None and entry is not None and not (entry.call is not None and entry.call.exchange):
            self._unheard[name] = queue

    def around_finish(self, original: Function) -> Function:
        """A sequence is done, in the midst of `process_outputs`."""

        def _finish_request(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(processor, *args, **kwargs)
            if OUTPUT.on and self.recorder.enabled:
                try:
                    state = argument(args, kwargs, 0, "req_state")
                    self._finishing.append((state.request_id, state))
                except Exception as error:
                    OUTPUT.fail(error)
            return result

        return _finish_request

    def around_outputs(self, original: Function) -> Function:
        """Outputs of a step: turned into text and handed to whoever waits for them."""

        def process_outputs(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            begin = now()
            result = original(processor, *args, **kwargs)
            if self._unheard:
                self._heard(argument(args, kwargs, 0, "engine_core_outputs"))
            if self._finishing:
                self._let_go(argument(args, kwargs, 0, "engine_core_outputs"), begin)
            return result

        return process_outputs

    def _heard(self, outputs: Any) -> None:
        """Mark who was handed a first output."""
        if not OUTPUT.on:
            self._unheard.clear()
        try:
            time = now()
            for output in outputs:
                queue = self._unheard.get(output.request_id)
                if queue is not None and queue.output is not None:
                    del self._unheard[output.request_id]
                    self.recorder.mark(self._entries[output.request_id].id, layout.HANDED_OVER, time)
        except Exception as error:
            self._unheard.clear()
            OUTPUT.fail(error)

    def _let_go(self, outputs: Any, begin: int) -> None:
        """Of those that are done, in any case: vLLM's states hold the prompts."""
        finishing, self._finishing = self._finishing, []
        if OUTPUT.on:
            try:
                self._finished(finishing, outputs, begin, now())
            except Exception as error:
                OUTPUT.fail(error)

    def _finished(self, finishing: list[tuple[str, Any]], outputs: Any, begin: int, end: int) -> None:
        reasons = {output.request_id: output.finish_reason for output in outputs}
        for name, state in finishing:
            entry = self._gone(name)
            if entry is None:
                continue
            known = reasons.get(name)
            # Where the core knows of no end, a stop string was found in the text
            reason = "stop" if known is None else extract.reason_name(known)
            data: dict[str, Any] = {"reason": reason, "detokenize": [begin, end]}
            data["sequences"] = [extract.returned(state, reason)]
            if reason == "error":
                data["error"] = "vllm"
            elif reason == "abort":  # by the engine, which is paused or about to end
                data.update(extract.ABORTED)
            entry.finish(self.recorder, end, data)

    def _gone(self, name: str) -> Entry | None:
        self._unheard.pop(name, None)
        return self._entries.pop(name, None)

    def around_abort(self, original: Function) -> Function:
        """The client went away, or the application thought better of it."""

        def abort_requests(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            states: dict[str, Any] = {}
            if OUTPUT.on and self._entries:
                try:
                    states = processor.request_states.copy()
                except Exception as error:
                    OUTPUT.fail(error)
            aborted = original(processor, *args, **kwargs)
            if OUTPUT.on and self.recorder.enabled:
                try:
                    for name in aborted:
                        self._ended(name, states.get(name), extract.ABORTED)
                except Exception as error:
                    OUTPUT.fail(error)
            return aborted

        return abort_requests

    def around_error(self, original: Function) -> Function:
        """The engine core has died: so have all its requests."""

        def propagate_error(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(processor, *args, **kwargs)
            if OUTPUT.on and self.recorder.enabled:
                try:
                    died_of = argument(args, kwargs, 0, "e")
                    told = {"reason": "error", "error": type(died_of).__name__}
                    for name in list(self._entries):
                        self._ended(name, processor.request_states.get(name), told)
                except Exception as error:
                    OUTPUT.fail(error)
            return result

        return propagate_error

    def _ended(self, name: str, state: Any, data: dict[str, Any]) -> None:
        entry = self._gone(name)
        if entry is not None:
            rows = [] if state is None else [extract.returned(state, data["reason"])]
            entry.finish(self.recorder, now(), {**data, "sequences": rows} if rows else dict(data))
