"""What is wrapped, on which class, and how: each wrapper takes two times and hands them on.

No wrapper stands on `forward` or `__call__` of a model, no hook is registered on a module and no instance
is touched, since each of these breaks a compiled model. A hook inside another hook belongs to the outer
one: a draft model's own `generate()` is drafting, a processor that calls a model is logits processing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.hooking import Hook, defining_class, wrap
from phasetrace_agent.recorder import Recorder

from . import extract
from .request import Request

Function = Callable[..., Any]
now = clock.now


class Thread(threading.local):
    """What this thread is doing."""

    request: Request | None = None  # the outermost generate() of this thread
    tokenize: list[int] | None = None  # begin and end of the tokenising since the last request
    chat = False
    last: Request | None = None


thread = Thread()
_recorder: Recorder | None = None
_known_classes: set[type] = set()

GENERATE = Hook("transformers.generate")
PREPARE = Hook("transformers.prepare")
UPDATE = Hook("transformers.update")
LOGITS = Hook("transformers.logits")
CRITERIA = Hook("transformers.criteria")
STREAM = Hook("transformers.stream")
ENCODE = Hook("transformers.encode")
DRAFT = Hook("transformers.draft")


def hook_generation(recorder: Recorder, module: Any) -> list[str]:
    """Wrap what every model shares; the names that are not where they are expected come back."""
    global _recorder
    _recorder = recorder
    mixin = module.GenerationMixin
    lists = sys.modules["transformers.generation.logits_process"].LogitsProcessorList
    criteria = sys.modules["transformers.generation.stopping_criteria"].StoppingCriteriaList
    wanted: list[tuple[Any, str, Callable[[Function], Function]]] = [
        (mixin, "prepare_inputs_for_generation", around_prepare),
        (mixin, "_update_model_kwargs_for_generation", around_update),
        (lists, "__call__", around_processors),
        (criteria, "__call__", around_criteria),
        (mixin, "generate", around_generate),
    ]
    missing = [name for owner, name, _ in wanted if name not in vars(owner)]
    if missing:
        return missing
    for owner, name, make in wanted:
        wrap(owner, name, make)
    for name in ENCODERS:
        wrap(mixin, name, around_encoder)
    wrap(mixin, "_prefill", around_prefill)
    drafters = sys.modules.get("transformers.generation.candidate_generator")
    for found in list(vars(drafters).values()) if drafters is not None else ():
        if isinstance(found, type):
            wrap(found, "get_candidates", around_draft)
            wrap(found, "update_candidate_strategy", around_draft)
    return []


ENCODERS = ("_prepare_encoder_decoder_kwargs_for_generation", "_maybe_prepare_encoder_kwargs_for_generation")


def know_class(model: Any) -> None:
    """Wrap where this model's class has methods of its own, at its first use."""
    kind = type(model)
    if kind in _known_classes:
        return
    _known_classes.add(kind)
    for name, make in (
        ("prepare_inputs_for_generation", around_prepare),
        ("_update_model_kwargs_for_generation", around_update),
        *((name, around_encoder) for name in ENCODERS),
    ):
        owner = defining_class(kind, name)
        if owner is not None:
            wrap(owner, name, make)


def know_streamer(streamer: Any) -> None:
    """Wrap the class of a streamer, at its first use."""
    kind = type(streamer)
    if streamer is None or kind in _known_classes:
        return
    _known_classes.add(kind)
    for name in ("put", "end"):
        owner = defining_class(kind, name)
        if owner is not None and owner is not object:
            wrap(owner, name, around_streamer)


def around_generate(original: Function) -> Function:
    """The request itself."""

    def generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _recorder
        if recorder is None or not recorder.enabled or not GENERATE.on or thread.request is not None:
            return original(self, *args, **kwargs)
        try:
            know_class(self)
            request = Request(recorder, self, args, kwargs, thread)
            know_streamer(request.call["streamer"])
        except Exception as error:
            GENERATE.fail(error)
            return original(self, *args, **kwargs)
        thread.request = request
        result, failure = None, None
        try:
            result = original(self, *args, **kwargs)
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            end(request, now(), result, failure)
            del result, failure

    return generate


def end(request: Request, time: int, result: Any, failure: BaseException | None) -> None:
    """A request is over, one way or the other."""
    thread.request = None
    thread.last = request if thread.tokenize is not None else None
    thread.tokenize, thread.chat = None, False
    try:
        request.finished(time, result, failure)
    except Exception as error:
        GENERATE.fail(error)
    finally:
        request.let_go()


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
