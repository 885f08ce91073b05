"""The steps of continuous batching, and who is in their batches."""

from __future__ import annotations

import weakref
from typing import Any

from phasetrace_agent import clock, layout
from phasetrace_agent.hooking import Hook, argument
from phasetrace_agent.recorder import Recorder

from .batches import Loop, Scheduled, batch_of, ending, given_by
from .continuous_requests import Requests
from .wrappers import Function

STEP = Hook("transformers.continuous.step")
SCHEDULE, FORWARD, OUTPUT = (layout.PART_CODE[name] for name in ("schedule", "forward", "output"))
now = clock.now


class Steps:
    """Those of all processors in this process."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.begin()

    def begin(self) -> None:
        """Forget what another recorder was told."""
        # A processor holds the cache: it must not be kept alive
        self._loops: weakref.WeakKeyDictionary[Any, Loop] = weakref.WeakKeyDictionary()

    @property
    def recorder(self) -> Recorder:
        """Who is told."""
        return self._requests.recorder

    def _loop(self, processor: Any) -> Loop:
        loop = self._loops.get(processor)
        if loop is None:
            loop = self._loops[processor] = Loop(self.recorder.next_id())
        return loop

    def around_prepare(self, original: Function) -> Function:
        """A step begins; where nothing is to do there is none."""

        def prepare_next_batch(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not STEP.on or not self.recorder.enabled:
                return original(processor, *args, **kwargs)
            entered = now()
            cancelled: tuple[str, ...] = ()
            try:
                cancelled = tuple(processor.scheduler._requests_to_cancel)
            except Exception as error:
                STEP.fail(error)
            ready = original(processor, *args, **kwargs)
            try:
                for name in cancelled:
                    self._requests.finished(name, now(), {"reason": "abort"})
                self._prepared(self._loop(processor), processor, entered, bool(ready))
            except Exception as error:
                STEP.fail(error)
            return ready

        return prepare_next_batch

    def _prepared(self, loop: Loop, processor: Any, entered: int, ready: bool) -> None:
        if not ready:
            loop.end = None
            return
        if not loop.codes:
            loop.begin = entered if loop.end is None else loop.end
        loop.cut(SCHEDULE, now())
        batch = [Scheduled(self._requests.of(member), member) for member in batch_of(processor)]
        loop.batches.append(batch)
        for scheduled in batch:
            known = scheduled.known
            if not known.scheduled:
                known.scheduled = True
                if known.id not in loop.members:
                    self.recorder.mark(known.id, layout.SCHEDULED, max(loop.begin, known.arrival))
                    self.recorder.detail(known.id, {"stream": loop.stream})

    def around_forward(self, original: Function) -> Function:
        """Forward, logits and sampling in one."""

        def _generation_step(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(processor, *args, **kwargs)
            self._forwarded(processor)
            return result

        return _generation_step

    def around_forward_of_manager(self, original: Function) -> Function:
        """The same where the manager has it."""

        def _generation_step(manager: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(manager, *args, **kwargs)
            self._forwarded(argument(args, kwargs, 0, "batch_processor"))
            return result

        return _generation_step

    def _forwarded(self, processor: Any) -> None:
        if STEP.on and self.recorder.enabled:
            try:
                loop = self._loop(processor)
                if loop.batches:  # else recording has begun in the middle of a step
                    loop.cut(FORWARD, now())
            except Exception as error:
                STEP.fail(error)

    def around_update(self, original: Function) -> Function:
        """The step's tokens are out where this ends."""

        def update_batch(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            recording = STEP.on and self.recorder.enabled
            if recording:
                try:
                    for scheduled in next(iter(self._loop(processor).batches), ()):
                        scheduled.given = len(given_by(scheduled.state))
                except Exception as error:
                    STEP.fail(error)
            result = original(processor, *args, **kwargs)
            if recording:
                try:
                    self._updated(self._loop(processor), now())
                except Exception as error:
                    STEP.fail(error)
            return result

        return update_batch

    def _updated(self, loop: Loop, time: int) -> None:
        if not loop.batches or not loop.codes:
            return
        loop.cut(OUTPUT, time)
        batch = loop.batches.popleft()
        present = {scheduled.known.id for scheduled in batch}
        over = [s for s in batch if s.finished]
        absent = [(ident, 0) for ident in loop.members - present]
        self.recorder.step(
            loop.stream,
            loop.index,
            loop.begin,
            loop.codes,
            loop.ends,
            sorted(present - loop.members),
            [s.known.id for s in over],
            [(s.known.id, s.tokens) for s in batch if s.tokens != 1] + absent,
            [(s.known.id, 0) for s in batch if len(given_by(s.state)) == s.given] + absent,
        )
        loop.members = (loop.members | present) - {s.known.id for s in over}
        loop.index += 1
        loop.end, loop.codes, loop.ends = time, [], []
        if loop.batches:  # with asynchronous batching the next step is under way
            loop.begin = time
        for scheduled in over:
            self._requests.finished(scheduled.state.request_id, time, ending(scheduled.state))

    def around_error(self, original: Function) -> Function:
        """A request failed."""

        def _handle_request_error(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(processor, *args, **kwargs)
            if not STEP.on or not self.recorder.enabled:
                return result
            try:
                error, state = argument(args, kwargs, 0, "error"), argument(args, kwargs, 1, "state")
                told = {"reason": "error", "error": type(error).__name__}
                known = self._requests.finished(state.request_id, now(), told)
                if known is not None:
                    self._loop(processor).members.discard(known.id)
            except Exception as failure:
                STEP.fail(failure)
            return result

        return _handle_request_error
