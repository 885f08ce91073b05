"""A rule, asked on a recording."""

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from phasetrace.advise.evidence import Evidence, gather
from phasetrace.advise.ranking import Candidate
from phasetrace.advise.rule import Rule
from phasetrace.analyze import breakdown
from phasetrace.model import Ceilings, Finding, NotEnoughData, Recording
from tests.advise import scenes

LARGE: Mapping[str, Any] = {"weight_bytes": 14_000_000_000, "device": "cuda", "layers": 32}


def evidence(recording: Recording, ceilings: Ceilings | None = None, **fields: Any) -> Evidence:
    return replace(gather(breakdown(recording), ceilings), **fields)


def ask(
    cause: ModuleType, recording: Recording, ceilings: Ceilings | None = None, **fields: Any
) -> Finding | NotEnoughData | None:
    """What the rule of this module finds in the recorded steps."""
    rule: Rule = cause.RULE
    answer = rule.on_steps(evidence(recording, ceilings, **fields))
    return answer.finding if isinstance(answer, Candidate) else answer


def without_steps(recording: Recording) -> Recording:
    return scenes.shifted(recording, stream=None, first_step=None, last_step=None)


def on_device(recording: Recording, share: float) -> Recording:
    """The device works for a share of each step."""
    steps = [
        replace(s, device_ns=((s.end_ns - s.begin_ns) * share).astype(np.int64)) for s in recording.steps
    ]
    return replace(recording, steps=tuple(steps))
