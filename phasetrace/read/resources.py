"""What users state of a server in its resource attributes: the same as an engine config, flattened.

`OTEL_RESOURCE_ATTRIBUTES=phasetrace.stated.hardware.name=H100,phasetrace.stated.engine.knobs.max_num_seqs=64`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from phasetrace.errors import UsageError
from phasetrace.mapping import Attributes, Value
from phasetrace.model import Defect, Recording
from phasetrace.read.engine_config import EngineConfig, config_of
from phasetrace.semconv import Attribute as A

_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,9})?([eE][+-]?\d{1,2})?", re.ASCII)
_SWITCHES = {"true": True, "false": False}


def with_stated(recording: Recording, resources: Mapping[str, Attributes]) -> Recording:
    """The recording with what the resources of its processes (by their keys) state."""
    for process, resource in resources.items():
        try:
            config = _config(resource)
        except UsageError as error:
            defect = Defect(f"resource attributes are left out: {error}")
            recording = replace(recording, defects=(*recording.defects, defect))
            continue
        if config is not None:
            recording = config.beside(recording, process)
    return recording


def _config(resource: Attributes) -> EngineConfig | None:
    document: dict[str, Any] = {}
    for key, value in resource.items():
        if key.startswith(A.STATED):
            place = document
            *holders, last = key.removeprefix(A.STATED).split(".")
            for holder in holders:
                place = place.setdefault(holder, {})
                if not isinstance(place, dict):
                    raise UsageError(f"{key} is inside of what has a value itself")
            place[last] = _plain(value)
    return config_of(document, A.STATED.rstrip(".")) if document else None


def _plain(value: Value) -> Value:
    """Numbers and switches, which an environment variable can only write as text."""
    if not isinstance(value, str):
        return value
    if value.lower() in _SWITCHES:
        return _SWITCHES[value.lower()]
    if _NUMBER.fullmatch(value) is None:
        return value
    return float(value) if set(value) & set(".eE") else int(value)
