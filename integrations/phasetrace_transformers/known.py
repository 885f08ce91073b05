"""What is told of a model to each recorder: its number and its facts; and the number of threads."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from phasetrace_agent import layout
from phasetrace_agent.hooking import Hook
from phasetrace_agent.recorder import Recorder

from . import facts

FACTS = Hook("transformers.facts")


class Seen(NamedTuple):
    """A model that was told of."""

    key: int  # its number in the recording
    device: str | None  # the kind of device on which it runs


if TYPE_CHECKING:
    Models = weakref.WeakKeyDictionary[Any, Seen]
# By recorder: after a stop the next one writes to a spool that knows nothing yet
_told: weakref.WeakKeyDictionary[Recorder, Models] = weakref.WeakKeyDictionary()


def attempt(hook: Hook, function: Callable[..., Any], *args: Any) -> Any:
    """What the function gives; where it fails nothing, and it is not called again."""
    if hook.on:
        try:
            return function(*args)
        except Exception as error:
            hook.fail(error)
    return None


def seen(recorder: Recorder, model: Any) -> Seen:
    """This model's number in the recording, and its device; its facts are told the first time."""
    models = _told.get(recorder)
    if models is None:
        models = _told.setdefault(recorder, weakref.WeakKeyDictionary())
    found = models.get(model)
    if found is None:
        # No lock: of threads that see a model at the same time, one tells
        about = attempt(FACTS, facts.model_facts, model) or {}
        own = Seen(recorder.next_id(), about.get("device"))
        found = models.setdefault(model, own)
        if found is own:
            recorder.facts(layout.MODEL, own.key, about)
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None and hasattr(torch, "get_num_threads") else 0
    if threads:
        recorder.facts(layout.PROCESS, 0, {"threads": threads})
    return found
