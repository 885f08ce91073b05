"""The wrappers inside a call of `generate()`: each takes two times and hands them to the timeline.

A hook inside another hook belongs to the outer one: a draft model's own `generate()` is drafting, a processor
that calls a model is logits processing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.hooking import Hook

from . import extract
from .request import Request

Function = Callable[..., Any]
MakeWrapper = Callable[[Function], Function]
After = Callable[[Request, int, Any, Any, Any], None]
now = clock.now

PREPARE = Hook("transformers.prepare")
UPDATE = Hook("transformers.update")
LOGITS = Hook("transformers.logits")
CRITERIA = Hook("transformers.criteria")
STREAM = Hook("transformers.stream")
ENCODE = Hook("transformers.encode")
DRAFT = Hook("transformers.draft")


class Thread(threading.local):
    """What this thread is doing."""

    request: Request | None = None  # the outermost generate() of this thread
    tokenize: list[int] | None = None  # begin and end of the tokenising since the last request
    in_pipeline = False  # between tokenising and detokenising of a pipeline
    chat = False
    last: Request | None = None


thread = Thread()


def forked() -> None:
    """In a forked child: the call that the fork came out of is the parent's, what follows is the child's."""
    request, thread.request, thread.last = thread.request, None, None
    if request is not None:
        request.leave_to_parent()


if hasattr(os, "register_at_fork"):  # here, since it cannot be taken back and hooking happens several times
    os.register_at_fork(after_in_child=forked)


def around(hook: Hook, after: After, before: Callable[[Request], None] | None = None) -> MakeWrapper:
    """In a call of `generate()`: `before(request)`, the hooked call, `after(request, entered, ..., result)`.

    `after` reads the clock as the last thing, so that our own time is in the part that ends there.
    """

    def make_wrapper(original: Function) -> Function:
        def hooked(self: Any, *args: Any, **kwargs: Any) -> Any:
            request = thread.request
            if request is None or request.busy or not hook.on:
                return original(self, *args, **kwargs)
            entered = now()
            if before is not None:
                try:
                    before(request)
                except Exception as error:
                    hook.fail(error)
            request.busy = True
            try:
                result = original(self, *args, **kwargs)
            finally:
                request.busy = False
            try:
                after(request, entered, args, kwargs, result)
            except Exception as error:
                hook.fail(error)
            return result

        return hooked

    return make_wrapper


def prepared(request: Request, entered: int, args: Any, kwargs: Any, inputs: Any) -> None:
    """The forward begins where this ends."""
    rows, positions = extract.forward_shape(inputs)
    width = width_of(args, kwargs)
    if request.device is not None:
        request.forward_begins()
    request.timeline.prepared(entered, now(), rows, positions, width)


def forward_ended(request: Request) -> None:
    """The forward ended where the update of the keyword arguments begins."""
    if request.device is not None:
        request.forward_ended()


def updated(request: Request, entered: int, args: Any, kwargs: Any, result: Any) -> None:
    """Cache and masks are up to date."""
    request.timeline.updated_kwargs(entered, now())


def processed(request: Request, entered: int, args: Any, kwargs: Any, scores: Any) -> None:
    """Logits processors and warpers have run."""
    request.timeline.processed_logits(entered, now(), width_of(args, kwargs))


def judged(request: Request, entered: int, args: Any, kwargs: Any, done: Any) -> None:
    """The step's tokens are out where the stopping criteria end."""
    request.timeline.judged(entered, now(), width_of(args, kwargs))


def encoded(request: Request, entered: int, args: Any, kwargs: Any, updated: Any) -> None:
    """The encoder ran; for a model without one this is called too, and is nothing."""
    if request.call.encoder_decoder or "mm_encoder_outputs" in updated:
        request.timeline.encoded(entered, now())


def drafted(request: Request, entered: int, args: Any, kwargs: Any, candidates: Any) -> None:
    """Speculation: the draft model, prompt lookup, and their adaption."""
    request.timeline.drafted(entered, now(), width_of(args, kwargs))


around_prepare = around(PREPARE, prepared)
around_update = around(UPDATE, updated, before=forward_ended)
around_processors = around(LOGITS, processed)
around_criteria = around(CRITERIA, judged)
around_encoder = around(ENCODE, encoded)
around_draft = around(DRAFT, drafted)


def around_prefill(original: Function) -> Function:
    """In 5.x the first forward ends with this; then the loop is set up, which is no part of it."""

    def _prefill(self: Any, *args: Any, **kwargs: Any) -> Any:
        outputs = original(self, *args, **kwargs)
        request = thread.request
        if request is not None and not request.busy and UPDATE.on:
            try:
                request.timeline.prefilled(now())
                if request.device is not None:
                    request.forward_ended()
            except Exception as error:
                UPDATE.fail(error)
        return outputs

    return _prefill


def around_streamer(original: Function) -> Function:
    """The user's streamer: `put` and `end`."""

    def stream(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not STREAM.on:
            return original(self, *args, **kwargs)
        entered = now()
        request.busy = True
        try:
            return original(self, *args, **kwargs)
        finally:
            request.busy = False
            try:
                request.timeline.streamed_tokens(entered, now())
            except Exception as error:
                STREAM.fail(error)

    return stream


def width_of(args: Any, kwargs: Any) -> int | None:
    """The width of the ids a hook was called with; a shape is known without asking the device."""
    ids = args[0] if args else kwargs.get("input_ids")
    return None if ids is None else ids.shape[1]
