"""Tokenising before and detokenising after a request, where a pipeline does both."""

from __future__ import annotations

import sys
from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.hooking import Hook, wrap

from .wrappers import Function, thread

MODULES = tuple(
    "transformers.pipelines." + name
    for name in ("text_generation", "text2text_generation", "image_text_to_text", "any_to_any")
)
TOKENIZE = Hook("transformers.tokenize")
DETOKENIZE = Hook("transformers.detokenize")
A_BATCH_APART = 100_000_000  # inputs tokenised further apart than this are of different batches
now = clock.now


def hook_pipelines() -> None:
    """Wrap the text pipelines that have been imported."""
    for name in MODULES:
        module = sys.modules.get(name)
        for found in list(vars(module).values()) if module is not None else ():
            if isinstance(found, type) and found.__module__ == name:
                wrap(found, "preprocess", around_preprocess)
                wrap(found, "_forward", around_forward)
                wrap(found, "postprocess", around_postprocess)


def around_preprocess(original: Function) -> Function:
    """Tokenising, once an input; those before one `generate()` are that request's."""

    def preprocess(self: Any, *args: Any, **kwargs: Any) -> Any:
        if thread.request is not None or not TOKENIZE.on:
            return original(self, *args, **kwargs)
        begin = now()
        inputs = original(self, *args, **kwargs)
        try:
            before = thread.tokenize
            same_batch = before is not None and begin - before[1] < A_BATCH_APART
            thread.tokenize = [before[0] if before is not None and same_batch else begin, now()]
            thread.chat = bool(args) and type(args[0]).__name__.endswith("Chat")
        except Exception as error:
            TOKENIZE.fail(error)
        return inputs

    return preprocess


def around_forward(original: Function) -> Function:
    """What the pipeline generates belongs to what it tokenised."""

    def _forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        thread.in_pipeline = True
        try:
            return original(self, *args, **kwargs)
        finally:
            thread.in_pipeline = False
            thread.tokenize = None

    return _forward


def around_postprocess(original: Function) -> Function:
    """Detokenising, once a prompt: their sum, since a lazy pipeline lets the application work in between."""

    def postprocess(self: Any, *args: Any, **kwargs: Any) -> Any:
        begin = now()
        outputs = original(self, *args, **kwargs)
        request = thread.last
        if request is None or thread.request is not None or not DETOKENIZE.on:
            return outputs
        try:
            took = now() - begin
            if request.detokenize is None:
                request.detokenize = [begin, begin]
            request.detokenize[1] += took
            request.recorder.detail(request.id, {"detokenize": request.detokenize})
        except Exception as error:
            DETOKENIZE.fail(error)
        return outputs

    return postprocess
