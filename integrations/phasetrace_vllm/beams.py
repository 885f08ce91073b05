"""Beam search, which vLLM does in its frontend: a request of one token for each beam and each token.

The user asked once, so they are one request, from the call until it has its beams.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.hooking import Hook, argument, wrap
from phasetrace_agent.recorder import Recorder

from . import extract
from .around_calls import around_call
from .calls import Call, Entry

Function = Callable[..., Any]
now = clock.now

SEARCH = Hook("vllm.beams")

searching: ContextVar[Search | None] = ContextVar("phasetrace_vllm_beams", default=None)


class Beams(Entry):
    """A search as the user sees it."""

    __slots__ = ("failure",)

    def __init__(self, ident: int, call: Call | None) -> None:
        super().__init__(ident, call, 1)
        self.failure: dict[str, Any] | None = None

    def finish(self, recorder: Recorder, time: int, data: dict[str, Any]) -> None:
        """One beam has one more token, which is no news; or none."""
        if "error" in data:
            self.failure = {"reason": data["reason"], "error": data["error"]}

    def over(self, recorder: Recorder, data: dict[str, Any]) -> None:
        """The search has ended."""
        super().finish(recorder, now(), {**data, **(self.failure or {})})


class Search:
    """One that is under way; it becomes a request with the first that it asks of the engine."""

    __slots__ = ("entry", "recorder", "settings", "token")

    def __init__(self, recorder: Recorder, params: Any) -> None:
        self.recorder = recorder
        asked = {"beam_width": params.beam_width, "max_tokens": params.max_tokens}
        self.settings = {name: value for name, value in asked.items() if type(value) is int}
        self.entry: Beams | None = None
        self.token: Token[Search | None] = searching.set(self)

    def leave(self, rows: list[dict[str, Any]], error: BaseException | None) -> None:
        """The call is over; an error ends its request too."""
        try:
            searching.reset(self.token)
        except ValueError:
            pass  # a generator that was given up is closed in another context
        if self.entry is None:
            return
        told: dict[str, Any] = {"reason": rows[0]["reason"] if rows else "error", "sequences": rows}
        if type(error).__name__ in ("CancelledError", "GeneratorExit"):
            told = extract.ABORTED
        elif error is not None:
            told = {"reason": "error", "error": type(error).__name__}
        self.entry.over(self.recorder, told)


def hook_offline(recorder: Recorder, module: Any) -> list[str]:
    """Wrap `LLM.beam_search`, which returns the beams of each prompt."""

    def around(original: Function) -> Function:
        def beam_search(llm: Any, /, *args: Any, **kwargs: Any) -> Any:
            search = _begin(recorder, args, kwargs, 1)
            try:
                found = original(llm, *args, **kwargs)
            except BaseException as error:
                _leave(search, list, error)
                raise
            _leave(search, lambda: [_row(beam) for output in found for beam in output.sequences])
            return found

        return around_call(beam_search)

    wrap(module.BeamSearchOfflineMixin, "beam_search", around)
    return []


def hook_online(recorder: Recorder, module: Any) -> list[str]:
    """Wrap the server's search, a generator that yields its beams in the end."""

    def around(original: Function) -> Function:
        async def beam_search(serving: Any, /, *args: Any, **kwargs: Any) -> Any:
            search = _begin(recorder, args, kwargs, 2)
            outputs = original(serving, *args, **kwargs)
            last = None
            try:
                async for last in outputs:
                    yield last
            except BaseException as error:
                _leave(search, list, error)
                raise
            finally:
                await outputs.aclose()
            _leave(search, lambda: [_choice(last, choice) for choice in getattr(last, "outputs", ())])

        return beam_search

    wrap(module.BeamSearchOnlineMixin, "beam_search", around)
    return []


def _begin(recorder: Recorder, args: Any, kwargs: Any, params_at: int) -> Search | None:
    if SEARCH.on and recorder.enabled:
        try:
            return Search(recorder, argument(args, kwargs, params_at, "params"))
        except Exception as error:
            SEARCH.fail(error)
    return None


def _leave(
    search: Search | None, rows: Callable[[], list[dict[str, Any]]], error: BaseException | None = None
) -> None:
    if search is None:
        return
    try:
        search.leave(rows(), error)
    except Exception as failure:
        SEARCH.fail(failure)


def _row(beam: Any) -> dict[str, Any]:
    prompt = len(beam.orig_prompt["prompt_token_ids"])
    reason = beam.finish_reason or "length"
    return {"prompt": prompt, "padding": 0, "output": len(beam.tokens) - prompt, "reason": reason}


def _choice(output: Any, choice: Any) -> dict[str, Any]:
    prompt, written = len(output.prompt_token_ids), len(choice.token_ids)
    return {"prompt": prompt, "padding": 0, "output": written, "reason": choice.finish_reason or "length"}
