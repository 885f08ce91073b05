"""Continuous batching (`generate_batch` and its manager): requests with a real queue, steps with a batch.

The engine runs in a thread of its own, so nothing here is thread-local: a request is known by the engine's
name for it. It arrives when the engine made its state, since from then on it stands in the engine's queue.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from phasetrace_agent import clock, layout, prefix
from phasetrace_agent.hooking import Hook, argument, wrap
from phasetrace_agent.recorder import Recorder

from . import parent
from .batches import Known, Loop, Scheduled, batch_of, created, ending, given_by, prompt_of
from .known import seen
from .wrappers import Function

MODULE = "transformers.generation.continuous_batching"
ADD = Hook("transformers.continuous.add")
STEP = Hook("transformers.continuous.step")
SCHEDULE, FORWARD, OUTPUT = (layout.PART_CODE[name] for name in ("schedule", "forward", "output"))
now = clock.now

_engine: Engine | None = None


def hook_continuous(recorder: Recorder) -> None:
    """Wrap the manager, the processor and the scheduler, where this version has them."""
    global _engine
    api = sys.modules.get(MODULE + ".continuous_api")
    scheduler = sys.modules.get(MODULE + ".scheduler")
    if api is None or scheduler is None:
        return
    if _engine is None:
        _engine = Engine(recorder)
    engine = _engine
    engine.tell(recorder)
    wrap(api.ContinuousBatchingManager, "add_request", engine.around_add_request)
    wrap(scheduler.Scheduler, "add_waiting_request", engine.around_add_waiting)
    processor = api.ContinuousBatchProcessor
    wrap(processor, "prepare_next_batch", engine.around_prepare)
    if not wrap(processor, "_generation_step", engine.around_forward):
        wrap(api.ContinuousBatchingManager, "_generation_step", engine.around_forward_of_manager)
    wrap(processor, "update_batch", engine.around_update)
    wrap(processor, "_handle_request_error", engine.around_error)


class Engine:
    """What is known of all managers in this process.

    The application's threads and the engine's share it without a lock, which a fork could leave held in the
    child: each says its part first and then looks for the other's, and `pop` gives a thing to one of them.
    Where an engine's parameter is read, it is by `argument`: the engine's own calls may name it.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._begin(recorder)

    def tell(self, recorder: Recorder) -> None:
        """From now on tell this recorder; another one knows nothing of what was told before."""
        if recorder is not self.recorder:
            self._begin(recorder)

    def _begin(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._requests: dict[str, Known] = {}
        self._early: dict[str, dict[str, Any]] = {}  # said of a request before the engine took it
        self._model: int | None = None
        # A processor holds the cache: it must not be kept alive
        self._loops: weakref.WeakKeyDictionary[Any, Loop] = weakref.WeakKeyDictionary()

    def _loop(self, processor: Any) -> Loop:
        loop = self._loops.get(processor)
        if loop is None:
            loop = self._loops[processor] = Loop(self.recorder.next_id())
        return loop

    # ---- the queue

    def around_add_request(self, original: Function) -> Function:
        """In the application's thread: its span, and the prompt's hashes, once the request is on its way."""

        def add_request(manager: Any, /, *args: Any, **kwargs: Any) -> Any:
            if not ADD.on or not self.recorder.enabled:
                return original(manager, *args, **kwargs)
            try:
                self._model = seen(self.recorder, manager.model).key
            except Exception as error:
                ADD.fail(error)
            name = original(manager, *args, **kwargs)
            try:
                self._added(name, argument(args, kwargs, 0, "input_ids"))
            except Exception as error:
                ADD.fail(error)
            return name

        return add_request

    def _added(self, name: str, ids: Any) -> None:
        span = parent.active_span()
        early: dict[str, Any] = {} if span is None else {"parent": span}
        secret = prefix.salt(self.recorder)
        if secret and isinstance(ids, (list, tuple)):
            early["prefix"] = prefix.chunks(list(ids), secret)
        self._early[name] = early
        known = self._requests.get(name)
        if known is not None:
            self._tell_early(known, name)

    def _tell_early(self, known: Known, name: str) -> None:
        early = self._early.pop(name, None)
        if early is None:  # none yet, or another thread has told it
            return
        hashed = early.pop("prefix", None)
        if early:
            self.recorder.detail(known.id, early)
        if hashed is not None:
            self.recorder.prefix(known.id, 0, *hashed)

    def around_add_waiting(self, original: Function) -> Function:
        """The engine has a request; again where it was put back into the queue."""

        def add_waiting_request(scheduler: Any, /, *args: Any, **kwargs: Any) -> Any:
            if ADD.on and self.recorder.enabled:
                try:
                    state = argument(args, kwargs, 0, "state")
                    known = self._requests.get(state.request_id)
                    if known is None:
                        self._arrived(state)
                    elif known.scheduled:
                        self.recorder.mark(known.id, layout.PREEMPTED, now())
                except Exception as error:
                    ADD.fail(error)
            return original(scheduler, *args, **kwargs)

        return add_waiting_request

    def _arrived(self, state: Any) -> Known:
        recorder = self.recorder
        known = Known(recorder.next_id(), created(state.created_time))
        time = known.arrival
        limit = getattr(state, "max_new_tokens", None)
        data: dict[str, Any] = {
            "engine": "transformers",
            "operation": "text_completion",
            "mode": "continuous",
            "sequences": [{"prompt": len(prompt_of(state)), "padding": 0}],
            "settings": {"batch_rows": 1, **({"max_new_tokens": limit} if type(limit) is int else {})},
        }
        if self._model is not None:
            data["model"] = self._model
        recorder.arrived(known.id, time, data)
        recorder.mark(known.id, layout.RECEIVED, time)
        self._requests[state.request_id] = known
        self._tell_early(known, state.request_id)
        return known

    # ---- the step

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
                    self._finished(name, now(), {"reason": "abort"})
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
        batch = [Scheduled(self._known(member), member) for member in batch_of(processor)]
        loop.batches.append(batch)
        for scheduled in batch:
            known = scheduled.known
            if not known.scheduled:
                known.scheduled = True
                if known.id not in loop.members:
                    self.recorder.mark(known.id, layout.SCHEDULED, max(loop.begin, known.arrival))
                    self.recorder.detail(known.id, {"stream": loop.stream})

    def _known(self, member: Any) -> Known:
        state = getattr(member, "state", member)
        known = self._requests.get(state.request_id)
        return self._arrived(state) if known is None else known  # a fork of another request

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
            self._finished(scheduled.state.request_id, time, ending(scheduled.state))

    # ---- the end

    def around_error(self, original: Function) -> Function:
        """A request failed."""

        def _handle_request_error(processor: Any, /, *args: Any, **kwargs: Any) -> Any:
            result = original(processor, *args, **kwargs)
            if not STEP.on or not self.recorder.enabled:
                return result
            try:
                error, state = argument(args, kwargs, 0, "error"), argument(args, kwargs, 1, "state")
                told = {"reason": "error", "error": type(error).__name__}
                known = self._requests.get(state.request_id)
                if known is not None:
                    self._loop(processor).members.discard(known.id)
                self._finished(state.request_id, now(), told)
            except Exception as failure:
                STEP.fail(failure)
            return result

        return _handle_request_error

    def _finished(self, name: str, time: int, data: dict[str, Any]) -> None:
        known = self._requests.pop(name, None)
        self._early.pop(name, None)
        if known is not None:
            self.recorder.finished(known.id, time, data)
