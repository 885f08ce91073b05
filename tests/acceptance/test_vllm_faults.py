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
        diagnosis = vllm_fault(fault.script, *fault.arguments, attempt=attempt).diagnosis(*fault.options)
        print(diagnosis["verdict"])
        if diagnosis["cause"] in fault.causes and fault.says in advice(diagnosis):
            return
        misses.append(f"{diagnosis['verdict']} {advice(diagnosis)}")
    pytest.fail("it was not:\n" + "\n".join(misses))


def advice(diagnosis: dict[str, Any]) -> str:
    first = diagnosis["findings"][0]
    return " ".join([first["recommendation"], *first["evidence"], *first["commands"]])
