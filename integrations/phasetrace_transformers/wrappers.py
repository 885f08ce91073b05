"""The wrappers inside a call of `generate()`: each takes two times and hands them to the timeline.

A hook inside another hook belongs to the outer one: a draft model's own `generate()` is drafting, a processor
that calls a model is logits processing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.hooking import Hook

from . import extract
from .request import Request

Function = Callable[..., Any]
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


def around_prepare(original: Function) -> Function:
    """The forward begins where this ends."""

    def prepare_inputs_for_generation(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not PREPARE.on:
            return original(self, *args, **kwargs)
        entered = now()
        request.busy = True
        try:
            inputs = original(self, *args, **kwargs)
        finally:
            request.busy = False
        try:
            rows, positions = extract.forward_shape(inputs)
            width = width_of(args, kwargs)
            if request.device is not None:
                request.forward_begins()
            request.timeline.prepared(entered, now(), rows, positions, width)
        except Exception as error:
            PREPARE.fail(error)
        return inputs

    return prepare_inputs_for_generation


def around_update(original: Function) -> Function:
    """The forward ended where this begins."""

    def _update_model_kwargs_for_generation(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not UPDATE.on:
            return original(self, *args, **kwargs)
        entered = now()
        if request.device is not None:
            try:
                request.forward_ended()
            except Exception as error:
                UPDATE.fail(error)
        request.busy = True
        try:
            updated = original(self, *args, **kwargs)
        finally:
            request.busy = False
        try:
            request.timeline.updated_kwargs(entered, now())
        except Exception as error:
            UPDATE.fail(error)
        return updated

    return _update_model_kwargs_for_generation


def around_processors(original: Function) -> Function:
    """Logits processors and warpers."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not LOGITS.on:
            return original(self, *args, **kwargs)
        entered = now()
        request.busy = True
        try:
            scores = original(self, *args, **kwargs)
        finally:
            request.busy = False
        try:
            request.timeline.processed_logits(entered, now(), width_of(args, kwargs))
        except Exception as error:
            LOGITS.fail(error)
        return scores

    return __call__


def around_criteria(original: Function) -> Function:
    """The step's tokens are out where this ends."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not CRITERIA.on:
            return original(self, *args, **kwargs)
        entered = now()
        request.busy = True
        try:
            done = original(self, *args, **kwargs)
        finally:
            request.busy = False
        try:
            request.timeline.judged(entered, now(), width_of(args, kwargs))
        except Exception as error:
            CRITERIA.fail(error)
        return done

    return __call__


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


def around_encoder(original: Function) -> Function:
    """The encoder; for a model without one this is called too, and is nothing."""

    def encode(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not ENCODE.on:
            return original(self, *args, **kwargs)
        entered = now()
        request.busy = True
        try:
            updated = original(self, *args, **kwargs)
        finally:
            request.busy = False
        try:
            if request.call.encoder_decoder or "mm_encoder_outputs" in updated:
                request.timeline.encoded(entered, now())
        except Exception as error:
            ENCODE.fail(error)
        return updated

    return encode


def around_draft(original: Function) -> Function:
    """Speculation: the draft model, prompt lookup, and their adaption."""

    def draft(self: Any, *args: Any, **kwargs: Any) -> Any:
        request = thread.request
        if request is None or request.busy or not DRAFT.on:
            return original(self, *args, **kwargs)
        entered = now()
        request.busy = True
        try:
            candidates = original(self, *args, **kwargs)
        finally:
            request.busy = False
        try:
            request.timeline.drafted(entered, now(), width_of(args, kwargs))
        except Exception as error:
            DRAFT.fail(error)
        return candidates

    return draft


def width_of(args: Any, kwargs: Any) -> int | None:
    """The width of the ids a hook was called with; a shape is known without asking the device."""
    ids = args[0] if args else kwargs.get("input_ids")
    return None if ids is None else ids.shape[1]
