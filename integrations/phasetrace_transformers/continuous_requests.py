"""The queue of continuous batching: which requests the engine has, and what is told of them.

The application's threads and the engine's share it without a lock, which a fork could leave held in the
child: each says its part first and then looks for the other's, and `pop` gives a thing to one of them. Where
an engine's parameter is read, it is by `argument`: the engine's own calls may name it.
"""

from __future__ import annotations

from typing import Any

from phasetrace_agent import clock, layout, prefix
from phasetrace_agent.hooking import Hook, argument
from phasetrace_agent.recorder import Recorder

from . import parent
from .batches import Known, created, prompt_of
from .known import seen
from .wrappers import Function

ADD = Hook("transformers.continuous.add")
now = clock.now


class Requests:
    """Those of all managers in this process, by the engine's names for them."""

    def __init__(self, recorder: Recorder) -> None:
        self.begin(recorder)

    def begin(self, recorder: Recorder) -> None:
        """From now on tell this recorder, which knows nothing of what was told before."""
        self.recorder = recorder
        self._known: dict[str, Known] = {}
        self._early: dict[str, dict[str, Any]] = {}  # said of a request before the engine took it
        self._model: int | None = None

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
        known = self._known.get(name)
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
                    known = self._known.get(state.request_id)
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
        self._known[state.request_id] = known
        self._tell_early(known, state.request_id)
        return known

    def of(self, member: Any) -> Known:
        """The request that has this part in a step."""
        state = getattr(member, "state", member)
        known = self._known.get(state.request_id)
        return self._arrived(state) if known is None else known  # a fork of another request

    def finished(self, name: str, time: int, data: dict[str, Any]) -> Known | None:
        """It is over, one way or the other; gives it, where the engine had it."""
        known = self._known.pop(name, None)
        self._early.pop(name, None)
        if known is not None:
            self.recorder.finished(known.id, time, data)
        return known
