"""Wrappers of what requests come by: they keep a `Call` at hand while the original runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.active_span import active_span
from phasetrace_agent.hooking import Hook, argument

from . import extract
from .calls import Call, current, leave

Function = Callable[..., Any]
now = clock.now

CALL = Hook("vllm.call")


def around_call(original: Function) -> Function:
    """A call in this thread, unless it is inside of another."""
    return _around_call(original, chat=False)


def around_chat(original: Function) -> Function:
    """The same for a conversation."""
    return _around_call(original, chat=True)


def _around_call(original: Function, chat: bool) -> Function:
    headers_at = _place_of_headers(original)

    def call(*args: Any, **kwargs: Any) -> Any:
        token = None
        if CALL.on and current.get() is None:
            try:
                headers = argument(args, kwargs, headers_at, "trace_headers")
                token = current.set(Call(_parent_of(headers), chat=chat))
            except Exception as error:
                CALL.fail(error)
        try:
            return original(*args, **kwargs)
        finally:
            if token is not None:
                leave(token)

    return call


def around_add_async(original: Function) -> Function:
    """The same in a task. A coroutine function stays one."""
    headers_at = _place_of_headers(original)

    async def add_request(*args: Any, **kwargs: Any) -> Any:
        token = None
        if CALL.on:
            try:
                call = current.get()
                headers = argument(args, kwargs, headers_at, "trace_headers")
                if call is None:
                    token = current.set(Call(_parent_of(headers)))
                elif call.parent is None:
                    call.parent = _parent_of(headers)
            except Exception as error:
                CALL.fail(error)
        try:
            return await original(*args, **kwargs)
        finally:
            if token is not None:
                leave(token)

    return add_request


def _place_of_headers(original: Function) -> int:
    """Which argument `trace_headers` is, where it is not given by name."""
    try:
        return list(inspect.signature(original).parameters).index("trace_headers")
    except (TypeError, ValueError):
        return sys.maxsize


def _parent_of(headers: Any) -> dict[str, Any] | None:
    return extract.parent(headers) or active_span()


def around_render(chat: bool) -> Callable[[Function], Function]:
    """Tokenising, chat template and all; `chat` if it is a conversation."""

    def make_wrapper(original: Function) -> Function:
        def render(*args: Any, **kwargs: Any) -> Any:
            begin = now()
            try:
                return original(*args, **kwargs)
            finally:
                _rendered(begin, chat)

        return render

    return make_wrapper


def around_render_async(chat: bool) -> Callable[[Function], Function]:
    """The same in a task."""

    def make_wrapper(original: Function) -> Function:
        async def render(*args: Any, **kwargs: Any) -> Any:
            begin = now()
            try:
                return await original(*args, **kwargs)
            finally:
                _rendered(begin, chat)

        return render

    return make_wrapper


def _rendered(begin: int, chat: bool) -> None:
    call = current.get()
    if call is not None:
        call.tokenize = [begin, now()]
        call.chat = call.chat or chat
