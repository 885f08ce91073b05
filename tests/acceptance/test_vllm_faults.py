"""Small services on a real vLLM with one planted fault each: that fault is what is said first."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.planted import FAULTS, HEALTHY, Planted
from tests.acceptance.real import Run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fault", (*FAULTS, *HEALTHY), ids=lambda fault: fault.name)
def test_what_is_wrong_is_named_first(vllm_fault: Callable[..., Run], fault: Planted) -> None:
    misses = []
    for attempt in range(2):  # the load of a shared machine may change within one run
        first = vllm_fault(fault.script, *fault.arguments, attempt=attempt).first(*fault.options)
        if first["cause"] in fault.causes and fault.says in advice(first):
            return
        misses.append(f"{first['cause']}: {advice(first)}")
    pytest.fail("it was not:\n" + "\n".join(misses))


def advice(finding: dict[str, Any]) -> str:
    return " ".join([finding["recommendation"], *finding["evidence"], *finding["commands"]])
