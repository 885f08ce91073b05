"""What users state in a server's resource attributes stands beside its spans, as an engine config does."""

from __future__ import annotations

from typing import Any

from phasetrace.read import stated_ceilings
from tests.read.made_spans import VLLM, reading, said, span

__all__ = ["reading"]  # the fixture
REQUEST = span("llm_request", attributes=VLLM)


def test_knobs_model_and_hardware(reading: Any) -> None:
    found = reading(
        REQUEST,
        phasetrace__stated__engine__version="0.11.0",
        phasetrace__stated__engine__knobs__max_num_batched_tokens="2048",
        phasetrace__stated__engine__knobs__enforce_eager="True",
        phasetrace__stated__engine__knobs__gpu_memory_utilization="0.9",
        phasetrace__stated__model__parameters="7e9",
        phasetrace__stated__model__bytes_per_weight="2",
        phasetrace__stated__hardware__memory_bandwidth_gb_s=3350,
        phasetrace__stated__hardware__kind="gpu",
    )
    (process,) = found.processes
    assert process.engines == {"vllm": "0.11.0"}
    assert process.facts["max_num_batched_tokens"] == 2048 and process.facts["enforce_eager"] is True
    assert process.facts["gpu_memory_utilization"] == 0.9
    assert found.models[found.requests[0].model].weight_bytes == 14_000_000_000
    ceilings = stated_ceilings(found)
    assert ceilings is not None and ceilings.bandwidth_bytes_s == 3350e9


def test_a_resource_that_states_nothing_adds_nothing(reading: Any) -> None:
    found = reading(REQUEST, service__name="vllm")
    assert found.processes == () and stated_ceilings(found) is None


def test_what_is_no_number_is_said_and_left_out(reading: Any) -> None:
    found = reading(REQUEST, phasetrace__stated__model__parameters="many")
    assert "model.parameters is 'many', which is no positive number" in said(found)
    assert found.processes == () and len(found.requests) == 1


def test_keys_inside_of_a_value_are_said(reading: Any) -> None:
    found = reading(REQUEST, phasetrace__stated__engine__knobs="x", phasetrace__stated__engine__knobs__y="1")
    assert "is inside of what has a value itself" in said(found)
