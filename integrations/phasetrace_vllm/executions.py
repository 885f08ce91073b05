"""How long a worker took for each step that the engine core gave it, on the host and on its device.

Workers get the steps in the order in which they were scheduled, each of them, so that the count of them is
their name on both sides, for each engine of a process apart. A step is computed by `execute_model`, and where
that returns nothing its tokens are chosen by `sample_tokens` afterwards. Device times come from events and
are not verified on a GPU yet.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.device_clock import POOL, DeviceClock
from phasetrace_agent.hooking import Hook, argument
from phasetrace_agent.recorder import Recorder

Function = Callable[..., Any]
now = clock.now

EXECUTE = Hook("vllm.execute")


class Execution:
    """A step that a worker is at."""

    __slots__ = ("begin", "events", "number", "tokens", "worked")

    def __init__(self, number: int, tokens: int, begin: int, events: Any) -> None:
        self.number = number
        self.tokens = tokens
        self.begin = begin
        self.events = events
        self.worked = 0  # nanoseconds inside of the worker


class Progress:
    """How far a worker is."""

    __slots__ = ("count", "unsampled")

    def __init__(self) -> None:
        self.count = 0  # of the steps it was given
        self.unsampled: Execution | None = None


def _nobody() -> None:
    """What a reference to no worker gives."""


class Executions:
    """The steps of the workers in this process: one, but for engines that run in the application's."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._workers: weakref.WeakKeyDictionary[Any, Progress] = weakref.WeakKeyDictionary()
        self._latest: tuple[Callable[[], Any], Progress] = _nobody, Progress()
        self._clocks: dict[str, DeviceClock | None] = {}

    def around_execute(self, original: Function) -> Function:
        """The model runs."""

        def execute_model(worker: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not EXECUTE.on or not self.recorder.enabled:
                return original(worker, *args, **kwargs)
            begin, clock = now(), None
            try:
                progress = self._progress(worker)
                number, progress.count = progress.count, progress.count + 1
                tokens = argument(args, kwargs, 0, "scheduler_output").total_num_scheduled_tokens
                clock = self._clock(worker) if tokens else None
                execution = Execution(number, tokens, begin, clock and clock.begin())
            except Exception as error:
                EXECUTE.fail(error)
                return original(worker, *args, **kwargs)
            result = original(worker, *args, **kwargs)
            try:
                execution.worked = now() - begin
                if result is None and tokens:
                    progress.unsampled = execution
                elif tokens:
                    self._over(execution, clock)
            except Exception as error:
                EXECUTE.fail(error)
            return result

        return execute_model

    def around_sample(self, original: Function) -> Function:
        """Its tokens are chosen; what passed since the model ran was the engine core's time."""

        def sample_tokens(worker: Any, /, *args: Any, **kwargs: Any) -> Any:
            begin = now()
            result = original(worker, *args, **kwargs)
            if EXECUTE.on:
                try:
                    progress = self._progress(worker)
                    execution, progress.unsampled = progress.unsampled, None
                    if execution is not None:
                        execution.worked += now() - begin
                        self._over(execution, self._clock(worker))
                except Exception as error:
                    EXECUTE.fail(error)
            return result

        return sample_tokens

    def _progress(self, worker: Any) -> Progress:
        latest = self._latest
        if latest[0]() is worker:
            return latest[1]
        found = self._workers.get(worker)
        if found is None:
            found = self._workers.setdefault(worker, Progress())
        self._latest = weakref.ref(worker), found
        return found

    def _over(self, execution: Execution, clock: DeviceClock | None) -> None:
        number, tokens, begin, end = execution.number, execution.tokens, execution.begin, now()
        if clock is None:
            self.recorder.execution(number, tokens, begin, end, execution.worked)
        elif execution.events is not None:
            clock.end(execution.events, number, tokens, begin, end)
        if clock is not None:
            clock.poll()

    def _clock(self, worker: Any) -> DeviceClock | None:
        """The clock of the worker's device; None for the host, whose time is the device's."""
        kind = str(getattr(getattr(worker, "device", None), "type", "cpu"))
        if kind not in self._clocks:
            self._clocks[kind] = self._new_clock(kind)
        return self._clocks[kind]

    def _new_clock(self, kind: str) -> DeviceClock | None:
        event = getattr(getattr(sys.modules.get("torch"), kind, None), "Event", None)
        if kind == "cpu" or event is None:
            return None
        made = DeviceClock(lambda: event(enable_timing=True), self.recorder.execution)
        atexit.register(_last_poll, made)
        return made


def _last_poll(clock: DeviceClock) -> None:
    try:
        clock.poll(POOL)
    except Exception:
        pass
