"""What is known once a process or a model: its number and facts, the run's salt, the number of threads."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

from phasetrace_agent import layout, signals
from phasetrace_agent.hooking import Hook
from phasetrace_agent.recorder import Recorder

from . import facts

FACTS = Hook("transformers.facts")

_models: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
_devices: dict[int, str | None] = {}  # by model
_first_sight = threading.Lock()  # of a model
_threads = 0


def attempt(hook: Hook, function: Callable[..., Any], *args: Any) -> Any:
    """What the function gives; where it fails nothing, and it is not called again."""
    if hook.on:
        try:
            return function(*args)
        except Exception as error:
            hook.fail(error)
    return None


def device_of(key: int) -> str | None:
    """The kind of device on which this model runs."""
    return _devices.get(key)


def model_key(recorder: Recorder, model: Any) -> int:
    """The number of this model in the recording; its facts are told the first time."""
    global _threads
    key = _models.get(model)
    if key is None:
        with _first_sight:
            key = _models.get(model)
            if key is None:
                key = recorder.next_id()
                told = attempt(FACTS, facts.model_facts, model) or {}
                _devices[key] = told.get("device")
                recorder.facts(layout.MODEL, key, told)
                _models[model] = key
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch is not None and hasattr(torch, "get_num_threads") else 0
    if threads != _threads:
        _threads = threads
        recorder.facts(layout.PROCESS, 0, {"threads": threads})
    return key


_salts: dict[str, bytes] = {}


def salt(recorder: Recorder) -> bytes:
    """The run's salt; empty where there is none, and then nothing is hashed."""
    folder = recorder._spool.folder
    if folder not in _salts:
        try:
            with open(os.path.join(folder, "salt"), "rb") as file:
                _salts[folder] = file.read(64)
        except OSError as error:
            signals.pass_on(error)
            _salts[folder] = b""
    return _salts[folder]
