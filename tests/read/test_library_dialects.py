"""What libraries and the conventions say of a call, and what of it is to be believed."""

from __future__ import annotations

from typing import Any

import pytest

from phasetrace.model import Provenance
from tests.read.made_spans import VLLM, at, reading, said, span

__all__ = ["reading"]  # the fixture


def test_openlits_local_numbers_are_refused(reading: Any) -> None:
    found = reading(
        span(
            "chat m",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "huggingface",
                "gen_ai.request.model": "m",
                "gen_ai.server.time_to_first_token": 1.0,
                "gen_ai.server.time_per_output_token": 0,
                "gen_ai.usage.input_tokens": 50,
                "gen_ai.usage.output_tokens": 60,
            },
            kind=3,
        ),
        telemetry__sdk__name="openlit",
    )
    (request,) = found.requests
    assert request.prompt_tokens is None and request.output_tokens is None
    assert at(request) == {"finished": 1000}
    assert "every two characters" in said(found) and "duration of the whole call" in said(found)


def test_openlits_numbers_of_a_service_are_used(reading: Any) -> None:
    (request,) = reading(
        span(
            "chat m",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.system": "openai",
                "gen_ai.server.time_to_first_token": 0.25,
                "gen_ai.usage.output_tokens": 16,
            },
        ),
        telemetry__sdk__name="openlit",
    ).requests
    assert at(request)["first_token"] == 250 and request.output_tokens == 16


def test_openinferences_event_is_the_first_token(reading: Any) -> None:
    (request,) = reading(
        span(
            "ChatCompletion",
            attributes={
                "openinference.span.kind": "LLM",
                "llm.model_name": "m",
                "llm.token_count.prompt": 7,
                "llm.token_count.completion": 9,
                "llm.token_count.prompt_details.cache_read": 4,
                "llm.provider": "openai",
            },
            events={"First Token Stream Event": 300},
        ),
        span("agent", number=2, attributes={"openinference.span.kind": "AGENT"}),
    ).requests
    assert at(request) == {"first_token": 300, "finished": 1000}
    assert (request.model, request.prompt_tokens, request.cached_tokens) == ("m", 7, 4)
    assert request.provenance("first_token_ns") is Provenance.OBSERVED


def test_openllmetrys_pipeline_has_a_duration_only(reading: Any) -> None:
    name = "transformers_text_generation_pipeline.call"
    found = reading(span(name, attributes={"gen_ai.request.model": "m", "gen_ai.system": "gpt2"}))
    assert at(found.requests[0]) == {"finished": 1000} and "OpenLLMetry" in said(found)


@pytest.mark.parametrize(
    ("prompt", "output", "provider"),
    [
        ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.provider.name"),
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens", "gen_ai.system"),
    ],
)
def test_the_conventions_old_and_new(prompt: str, output: str, provider: str, reading: Any) -> None:
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.response.time_to_first_chunk": 0.3,
        prompt: 5,
        output: 6,
        provider: "openai",
    }
    (request,) = reading(span("chat m", attributes=attributes)).requests
    assert (request.prompt_tokens, request.output_tokens, request.engine) == (5, 6, "openai")
    assert at(request)["first_token"] == 300


@pytest.mark.parametrize("operation", ["embeddings", "execute_tool", "invoke_agent"])
def test_what_is_no_request_to_a_model(operation: str, reading: Any) -> None:
    other = {"gen_ai.operation.name": operation, "gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 1}
    found = reading(span("x", attributes=other), span("y", number=2, attributes=VLLM))
    assert len(found.requests) == 1


def test_a_client_in_a_trace_of_its_own_is_known_by_the_id_of_the_answer(reading: Any) -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.id": "cmpl-7"}
    other = chat | {"gen_ai.response.id": "cmpl-8"}
    found = reading(
        span("chat", -20, 1020, kind=3, attributes=chat),
        span("chat", -20, 1020, kind=3, trace=2, attributes=other),
        span("llm_request", number=3, trace=3, attributes=VLLM | {"gen_ai.request.id": "cmpl-7-0"}),
    )
    assert sorted(r.engine for r in found.requests) == ["unknown", "vllm"]
