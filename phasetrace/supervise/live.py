"""`run --live`: what the last seconds held, in the last row of the terminal, or in lines of a file."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TextIO

from phasetrace.analyze.attribution import phases
from phasetrace.analyze.metrics import ttft_ns
from phasetrace.model import Phase, Recording, Request, RequestStatus, Steps
from phasetrace.render.ink import Ink
from phasetrace.render.live import Now, live_line
from phasetrace.supervise.footer import Footer

WINDOW_S = 10.0
STILL_S = 2.0  # what an engine without a step for so long runs is not known
DRAWN_EVERY_S = 1.0  # more often nobody reads it
PRINTED_EVERY_S = 5.0  # a line in a file, which cannot be drawn anew
WIDTH_OF_FILES = 120


class Live:
    """Takes the parts of a recording and draws what they say of now."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        able = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._footer = Footer(self._stream) if able else None
        self._requests: deque[Request] = deque()
        self._steps: deque[Steps] = deque()
        self._last: dict[str, Steps] = {}  # by process
        self._done = 0
        self._under_way: int | None = None
        self._began_ns: int | None = None  # the first step
        self._every_s = DRAWN_EVERY_S if able else PRINTED_EVERY_S
        self._shown_s = -self._every_s

    def record(self, recording: Recording) -> None:
        """Take one part."""
        ended = [r for r in recording.requests if r.status is not RequestStatus.CUT_OFF and r.finished_ns]
        self._done += len(ended)
        self._requests += ended
        for steps in recording.steps:
            if len(steps):
                self._began_ns = self._began_ns or int(steps.begin_ns[0])
                self._steps.append(steps)
                self._last[steps.process] = steps

    def draw(self, under_way: int | None = None) -> None:
        """Show the line now and then: on a terminal in the place of the last one, in a file below it.

        `under_way` are the requests that have not ended: without any nothing runs, and while a step takes
        long nothing else is known.
        """
        self._under_way = under_way
        if time.monotonic() - self._shown_s < self._every_s:
            return
        self._shown_s = time.monotonic()
        with suppress(Exception):  # whatever a view does, the recording goes on
            if self._footer is None:
                self._print()
            else:
                width = os.get_terminal_size(self._stream.fileno()).columns - 1
                self._footer.show(self._line(Ink(width, color=not os.environ.get("NO_COLOR"))))

    def close(self) -> None:
        """Take the line away; a file gets the last numbers instead."""
        self._under_way = 0
        if self._footer is not None:
            self._footer.close()
        else:
            self._print()

    def _line(self, ink: Ink) -> str:
        return live_line(self.now(time.time_ns()), ink)

    def _print(self) -> None:
        with suppress(OSError, ValueError):  # whoever closed stderr does not want to see it
            print(self._line(Ink(WIDTH_OF_FILES)), file=self._stream, flush=True)

    def now(self, now_ns: int) -> Now:
        """The numbers over the window that ends at `now_ns`."""
        since = max(now_ns - int(WINDOW_S * 1e9), self._began_ns or 0)
        while self._requests and (self._requests[0].finished_ns or 0) < since:
            self._requests.popleft()
        while self._steps and int(self._steps[0].end_ns[-1]) < since:
            self._steps.popleft()
        idle = self._under_way == 0
        fresh = [s for s in self._last.values() if not idle and now_ns - int(s.end_ns[-1]) < STILL_S * 1e9]
        tokens, lengths = self._decoded(since)
        first = [ns for r in self._requests if (ns := ttft_ns(r)) is not None]
        waiting = [int(s.waiting[-1]) for s in fresh if s.waiting is not None]
        return Now(
            running=sum(int(s.running[-1]) for s in fresh if s.running is not None) if fresh else None,
            waiting=sum(waiting) if waiting else None,
            under_way=self._under_way or 0,
            requests=self._done,
            tokens_s=tokens * 1e9 / (now_ns - since) if self._steps and now_ns > since else None,
            ttft_ns=statistics.median(first) if first else None,
            itl_ns=statistics.median(lengths) if lengths else None,
            phases=self._phases(),
        )

    def _decoded(self, since: int) -> tuple[int, list[int]]:
        """Tokens given out since then, and how long the steps took that gave them."""
        tokens, lengths = 0, []
        for steps in self._steps:
            recent = steps.end_ns >= since
            lengths += (steps.end_ns - steps.begin_ns)[recent].tolist()
            if steps.new_tokens is not None:
                tokens += int(steps.new_tokens[recent].sum())
        return tokens, lengths

    def _phases(self) -> dict[Phase, int]:
        found: dict[Phase, int] = {}
        for request in self._requests:
            for phase in phases(request):
                found[phase.phase] = found.get(phase.phase, 0) + phase.ns
        return {phase: found[phase] for phase in Phase if phase in found}
