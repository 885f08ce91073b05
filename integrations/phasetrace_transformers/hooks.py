"""What is wrapped and on which class, and the request itself.

No wrapper stands on `forward` or `__call__` of a model, no hook is registered on a module and no instance is
touched, since each of these breaks a compiled model.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from phasetrace_agent.hooking import Hook, defining_class, wrap
from phasetrace_agent.recorder import Recorder

from .request import Request
from .wrappers import (
    Function,
    around_criteria,
    around_draft,
    around_encoder,
    around_prefill,
    around_prepare,
    around_processors,
    around_streamer,
    around_update,
    now,
    thread,
)

_recorder: Recorder | None = None
_known_classes: set[type] = set()

GENERATE = Hook("transformers.generate")


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
        if kwargs.get("cache_implementation") == "paged":  # its requests are those of continuous batching
            return original(self, *args, **kwargs)
        try:
            know_class(self)
            request = Request(recorder, self, args, kwargs, thread)
            know_streamer(request.call["streamer"])
        except Exception as error:
            GENERATE.fail(error)
            return original(self, *args, **kwargs)
        result, failure = None, None
        try:
            thread.request = request  # in here, since a signal handler may raise anywhere
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
    thread.last = request if thread.in_pipeline else None
    thread.tokenize, thread.chat = None, False
    try:
        if not request.is_parents:
            request.finished(time, result, failure)
    except Exception as error:
        GENERATE.fail(error)
    finally:
        request.let_go()
