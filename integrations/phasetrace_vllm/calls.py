"""The call that requests come by: an HTTP exchange, `LLM.generate()`, `AsyncLLM.add_request()`.

It travels in a context variable, so that wherever vLLM registers a request the call is at hand, in whatever
task. A request of an HTTP exchange ends when the exchange does: till then its last word is kept back.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import Any

from phasetrace_agent import clock, layout
from phasetrace_agent.recorder import Recorder

current: ContextVar[Call | None] = ContextVar("phasetrace_vllm_call", default=None)


def leave(token: Token[Call | None]) -> None:
    """The call that was made the current one is over."""
    try:
        current.reset(token)
    except ValueError:
        pass  # a coroutine that was given up is closed in another context, which never had this call


class Call:
    """Where its requests began, whose they are, and what is to be said once it is over."""

    __slots__ = (
        "begin",
        "chat",
        "entries",
        "exchange",
        "first",
        "gone",
        "last",
        "open",
        "parent",
        "tokenize",
    )

    def __init__(self, parent: dict[str, Any] | None, exchange: bool = False, chat: bool = False) -> None:
        self.begin = clock.now()
        self.parent = parent
        self.exchange = exchange  # over HTTP: the user has an output when its bytes are sent
        self.chat = chat
        self.tokenize: list[int] | None = None  # begin and end of the latest
        self.entries: list[Entry] = []  # of an exchange
        self.first: int | None = None  # bytes of the answer handed to the server
        self.last: int | None = None
        self.gone = False  # the client went away before the end
        self.open = True

    def sent(self, time: int) -> None:
        """Bytes of the answer were handed to the server."""
        self.last = time
        if self.first is None:
            self.first = time

    def left(self) -> None:
        """No client is there; a server also says so once the answer is sent."""
        self.gone = self.gone or any(entry.left > 0 for entry in self.entries)

    def over(self, recorder: Recorder) -> None:
        """The exchange has ended: its requests have too, but for those that vLLM has not finished yet."""
        self.open = False
        entries, self.entries = self.entries, []  # no cycle is left for the collector
        for entry in entries:
            if entry.ended is not None:
                entry.tell(recorder)


class Entry:
    """A request as the user sees it; with `n` > 1 it is several in the engine core."""

    __slots__ = ("call", "children", "ended", "id", "left", "own", "time")

    def __init__(self, ident: int, call: Call | None, children: int) -> None:
        self.id = ident
        self.call = call
        self.children: list[str] = []  # the core's names of them, where there are several
        self.left = children
        self.own: dict[str, str] | None = None  # its trace and span, where vLLM must know them
        self.ended: dict[str, Any] | None = None
        self.time = 0

    def finish(self, recorder: Recorder, time: int, data: dict[str, Any]) -> None:
        """One of its sequences is done; with the last one the request is."""
        self.left -= 1
        sequences = [*(self.ended or {}).get("sequences", ()), *data.get("sequences", ())]
        self.ended = {**(self.ended or {}), **data}
        if sequences:
            self.ended["sequences"] = sequences
        self.time = time
        if self.left <= 0 and not (self.call is not None and self.call.exchange and self.call.open):
            self.tell(recorder)

    def tell(self, recorder: Recorder) -> None:
        """The last word on it."""
        data, self.ended = self.ended, None
        if data is None:
            return
        call = self.call
        if call is not None and call.exchange:
            if call.first is not None:
                recorder.mark(self.id, layout.HANDED_OVER, call.first)
            if call.last is not None and call.last != call.first:
                recorder.mark(self.id, layout.HANDED_OVER, call.last)
            if call.gone:
                data["disconnected"] = True
        recorder.finished(self.id, self.time, data)
