"""HTTP exchanges: a pure ASGI middleware around what vLLM's `build_app` returns. Touches no message."""

from __future__ import annotations

from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.active_span import active_span
from phasetrace_agent.hooking import Hook
from phasetrace_agent.recorder import Recorder

from . import extract
from .calls import Call, current, leave

EXCHANGE = Hook("vllm.http")
now = clock.now


class Exchanges:
    """Notes when a request arrives, when bytes of its answer are sent, and whether the client waits."""

    def __init__(self, app: Any, recorder: Recorder) -> None:
        self.app = app
        self.recorder = recorder

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One exchange, or whatever else the server calls its application for."""
        call = None
        if EXCHANGE.on and self.recorder.enabled:
            try:
                call = call_of(scope) if scope["type"] == "http" else None
            except Exception as error:
                EXCHANGE.fail(error)
        if call is None:
            await self.app(scope, receive, send)
            return

        async def watched_send(message: Any) -> None:
            await send(message)
            if EXCHANGE.on:
                try:
                    if message["type"] == "http.response.body" and message.get("body"):
                        call.sent(now())
                except Exception as error:
                    EXCHANGE.fail(error)

        async def watched_receive() -> Any:
            message = await receive()
            if EXCHANGE.on:
                try:
                    if message["type"] == "http.disconnect":
                        call.left()
                except Exception as error:
                    EXCHANGE.fail(error)
            return message

        token = current.set(call)
        try:
            await self.app(scope, watched_receive, watched_send)
        finally:
            leave(token)
            try:
                call.over(self.recorder)
            except Exception as error:
                EXCHANGE.fail(error)


def put_around(app: Any, recorder: Recorder) -> None:
    """Make ours the outermost middleware of a Starlette application.

    Something that vLLM starts with may have built the stack of middleware already; it is wrapped then, since
    nothing can be added to it, and building it again would make the application's own middleware anew.
    """
    if app.middleware_stack is None:
        app.add_middleware(Exchanges, recorder=recorder)
    else:
        app.middleware_stack = Exchanges(app.middleware_stack, recorder)


def call_of(scope: Any) -> Call:
    """The call that an HTTP scope begins."""
    parent = None
    for name, value in scope.get("headers", ()):
        if name == b"traceparent":
            parent = extract.traceparent(value.decode("latin-1"))
    path = scope.get("path", "")
    return Call(parent or active_span(), exchange=True, chat=isinstance(path, str) and "chat" in path)
