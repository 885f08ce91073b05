"""A rule, asked on a recording."""

from dataclasses import replace
from types import ModuleType
from typing import Any

from phasetrace.advise.evidence import Evidence, gather
from phasetrace.advise.ranking import Candidate
from phasetrace.advise.rule import Rule
from phasetrace.analyze import breakdown
from phasetrace.model import Ceilings, Finding, NotEnoughData, Recording


def evidence(recording: Recording, ceilings: Ceilings | None = None, **fields: Any) -> Evidence:
    return replace(gather(breakdown(recording), ceilings), **fields)


def ask(
    cause: ModuleType, recording: Recording, ceilings: Ceilings | None = None, **fields: Any
) -> Finding | NotEnoughData | None:
    """What the rule of this module finds in the recorded steps."""
    rule: Rule = cause.RULE
    answer = rule.on_steps(evidence(recording, ceilings, **fields))
    return answer.finding if isinstance(answer, Candidate) else answer
