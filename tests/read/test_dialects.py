"""Each writer's spans become the same request, and what its numbers really mean is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.model import Provenance, Recording, Request, RequestStatus
from phasetrace.read import read

BEGIN, MS = 1_700_000_000_000_000_000, 1_000_000
LATENCY = "gen_ai.latency."


def span(name: str, begin: float = 0, end: float = 1000, **fields: Any) -> dict[str, Any]:
    """A span by its times in milliseconds; `parent` is the number of another one."""
    number = fields.pop("number", 1)
    parent = fields.pop("parent", None)
    attributes = [{"key": k, "value": value(v)} for k, v in fields.pop("attributes", {}).items()]
    found = {
        "traceId": f"{fields.pop('trace', 1):032x}",
        "spanId": f"{number:016x}",
        "name": name,
        "kind": 2,
        "startTimeUnixNano": str(BEGIN + int(begin * MS)),
        "endTimeUnixNano": str(BEGIN + int(end * MS)),
        "attributes": attributes,
    }
    if parent is not None:
        found["parentSpanId"] = f"{parent:016x}"
    if (events := fields.pop("events", None)) is not None:
        found["events"] = [{"name": n, "timeUnixNano": str(BEGIN + int(t * MS))} for n, t in events.items()]
    return found | fields


def value(plain: Any) -> dict[str, Any]:
    match plain:
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case float():
            return {"doubleValue": plain}
        case list():
            return {"arrayValue": {"values": [value(item) for item in plain]}}
    return {"stringValue": plain}


@pytest.fixture
def reading(tmp_path: Path) -> Any:
    def one(*spans: dict[str, Any], scope: str = "", **resource: Any) -> Recording:
        attributes = [{"key": k.replace("__", "."), "value": value(v)} for k, v in resource.items()]
        group = {
            "resource": {"attributes": attributes},
            "scopeSpans": [{"scope": {"name": scope}, "spans": list(spans)}],
        }
        (tmp_path / "trace.json").write_text(json.dumps({"resourceSpans": [group]}))
        return read(tmp_path / "trace.json")

    return one


def at(request: Request) -> dict[str, float]:
    """The known moments in milliseconds from the arrival."""
    names = ("received_ns", "scheduled_ns", "first_token_ns", "last_token_ns", "finished_ns")
    found = {name.removesuffix("_ns"): getattr(request, name) for name in names}
    return {name: (t - request.arrival_ns) / MS for name, t in found.items() if t is not None}


def said(found: Recording) -> str:
    return "\n".join(defect.defect for defect in found.defects)


VLLM = {
    LATENCY + "time_to_first_token": 0.5,
    LATENCY + "e2e": 1.0,
    LATENCY + "time_in_queue": 0.1,
    LATENCY + "time_in_model_prefill": 0.3,
    LATENCY + "time_in_model_decode": 0.45,
    "gen_ai.usage.prompt_tokens": 100,
    "gen_ai.usage.completion_tokens": 10,
}


def test_vllm(reading: Any) -> None:
    found = reading(span("llm_request", attributes=VLLM), scope="vllm.llm_engine")
    (request,) = found.requests
    assert at(request) == {
        "received": 100,
        "scheduled": 200,
        "first_token": 500,
        "last_token": 950,
        "finished": 1000,
    }
    assert (request.engine, request.prompt_tokens, request.output_tokens) == ("vllm", 100, 10)
    assert request.provenance("first_token_ns") is Provenance.DERIVED
    assert request.provenance("finished_ns") is Provenance.OBSERVED
    assert request.provenance("cached_tokens") is Provenance.UNKNOWN
    assert "spans of vLLM do not say: the batch, cached tokens" in said(found)


def test_vllm_integers_as_strings_and_a_decode_of_zero(reading: Any) -> None:
    one = VLLM | {LATENCY + "time_in_model_decode": 0, "gen_ai.usage.completion_tokens": "1"}
    (request,) = reading(span("llm_request", end=502, attributes=one | {LATENCY + "e2e": 0.502})).requests
    assert request.output_tokens == 1 and request.first_token_ns == request.last_token_ns


def test_vllms_proposed_spans_are_observed(reading: Any) -> None:
    (request,) = reading(
        span("llm_request", attributes=VLLM),
        span("vllm_queue", 50, 150, number=2, parent=1),
        span("vllm_prefill", 150, 480, number=3, parent=1),
        span("vllm_decode", 480, 940, number=4, parent=1),
        span("vllm_preempted", 600, 650, number=5, parent=1),
        scope="vllm",
    ).requests
    assert at(request) == {
        "received": 50,
        "scheduled": 150,
        "first_token": 480,
        "last_token": 940,
        "finished": 1000,
    }
    assert not request.derived and len(request.preemptions) == 1


def test_vllm_aborted_is_no_success(reading: Any) -> None:
    aborted = VLLM | {"gen_ai.response.finish_reasons": '["abort"]'}
    (request,) = reading(span("llm_request", attributes=aborted)).requests
    assert request.status is RequestStatus.FAILED


SGLANG = VLLM | {"module": "sglang::request", "rid": "abc", LATENCY + "time_in_model_prefill": 0.4}


def test_sglangs_prefill_holds_the_queue(reading: Any) -> None:
    (request,) = reading(span(" Req abc", attributes=SGLANG)).requests
    assert request.engine == "sglang" and request.external_id == "abc"
    assert at(request)["scheduled"] == 200 and at(request)["received"] == 100


def test_sglang_without_a_queue_does_not_say_prefill(reading: Any) -> None:
    without = {k: v for k, v in SGLANG.items() if "queue" not in k}
    found = reading(span(" Req abc", attributes=without))
    assert "scheduled" not in at(found.requests[0]) and "counts the queue into it" in said(found)


def test_sglangs_slices_are_found_through_its_threads(reading: Any) -> None:
    plain = {"module": "sglang::request", "gen_ai.usage.prompt_tokens": 9}
    (request,) = reading(
        span(" Req abc", attributes=plain),
        span("Scheduler [TP 0] (host:a | pid:1)", number=2, parent=1, attributes={"thread_label": "S"}),
        span("prefill_waiting", 20, 120, number=3, parent=2),
        span("chunked_prefill", 120, 300, number=4, parent=2),
        span("prefill_forward", 300, 400, number=5, parent=2),
        span("decode_forward", 410, 990, number=6, parent=2),
        span("decode_loop", 410, 420, number=7, parent=2),
    ).requests
    assert at(request) == {
        "received": 20,
        "scheduled": 120,
        "first_token": 400,
        "last_token": 990,
        "finished": 1000,
    }


def test_minus_one_of_tensorrt_llm_is_missing(reading: Any) -> None:
    found = reading(
        span(
            "llm_request",
            attributes={
                LATENCY + "time_to_first_token": 0.5,
                LATENCY + "e2e": 1.0,
                LATENCY + "time_in_queue": -1.0,
                LATENCY + "kv_cache_transfer_time": -1,
                "gen_ai.usage.completion_tokens": -1,
            },
        ),
        scope="tensorrt_llm",
    )
    (request,) = found.requests
    assert request.engine == "tensorrt-llm" and request.output_tokens is None
    assert at(request) == {"first_token": 500, "finished": 1000}
    assert "TensorRT-LLM writes -1 for it (1 of 1 requests)" in said(found)


def test_tensorrt_llms_queue_begins_at_the_arrival(reading: Any) -> None:
    (request,) = reading(
        span("x", attributes={LATENCY + "time_to_first_token": 0.5, LATENCY + "time_in_queue": 0.2}),
        service__name="trtllm-serve",
    ).requests
    assert at(request) == {"received": 0, "scheduled": 200, "first_token": 500, "finished": 1000}


def test_tgis_durations_are_texts(reading: Any) -> None:
    texts = {
        "total_time": "1.002s",
        "validation_time": "900µs",
        "queue_time": "51.1ms",
        "inference_time": "950ms",
        "time_per_token": "47.5ms",
        "seed": "Some(1)",
    }
    (request,) = reading(span("generate_stream", end=1002, attributes=texts)).requests
    assert request.engine == "tgi" and request.output_tokens == 20
    assert request.provenance("sequences") is Provenance.DERIVED
    assert at(request) == {"received": 0.9, "scheduled": 52, "last_token": 1002, "finished": 1002}


def test_llm_d_has_two_times_to_the_first_token_and_one_is_the_users(reading: Any) -> None:
    prefilling = VLLM | {LATENCY + "e2e": 0.51, LATENCY + "time_in_model_decode": 0.0}
    prefilling |= {"gen_ai.usage.completion_tokens": 1}
    decoding = {LATENCY + "time_to_first_token": 0.02, LATENCY + "time_in_model_decode": 3.0}
    decoding |= {"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 200}
    found = reading(
        span("llm_d.pd_proxy.request", 0, 3700),
        span("llm_d.pd_proxy.prefill", 1, 3690, number=2, parent=1),
        span("llm_request", 10, 520, number=3, parent=2, attributes=prefilling),
        span("llm_d.pd_proxy.decode", 560, 3690, number=4, parent=2),
        span("llm_request", 600, 3650, number=5, parent=4, attributes=decoding),
        scope="vllm",
    )
    (request,) = found.requests
    assert at(request) == {
        "received": 110,
        "scheduled": 210,
        "first_token": 620,
        "last_token": 3620,
        "finished": 3700,
    }
    assert request.output_tokens == 200 and "two servers" in said(found)


def test_a_gateway_alone_is_all_there_is(reading: Any) -> None:
    found = reading(span("gateway.request", attributes={"gen_ai.request.model": "m"}))
    assert at(found.requests[0]) == {"finished": 1000}
    assert "llm-d" in said(found)


@pytest.mark.parametrize("name", ["http-request", "gateway.request"])
def test_a_gateway_around_an_engine_is_not_counted(name: str, reading: Any) -> None:
    found = reading(
        span(name, -50, 1050, attributes={"x_request_id": "1"}),
        span("handle_payload", -10, 1010, number=2, parent=1),
        span("llm_request", number=3, parent=2, attributes=VLLM),
    )
    assert [r.engine for r in found.requests] == ["vllm"]


def test_dynamos_frontend_alone(reading: Any) -> None:
    found = reading(span("http-request", attributes={"x_request_id": "1"}))
    assert found.requests[0].engine == "dynamo" and "opaque" in said(found)


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


def test_a_client_whose_server_is_two_spans_below_is_not_counted_twice(reading: Any) -> None:
    """The spans of HTTP in between are not kept: the client is the one that lies around."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    found = reading(
        span("chat", -20, 1020, kind=3, attributes=chat),
        span("chat", 2000, 3000, kind=3, number=2, attributes=chat),
        span("llm_request", number=3, parent=77, attributes=VLLM),
    )
    assert sorted(r.span_id for r in found.requests) == [f"{2:016x}", f"{3:016x}"]


def test_many_requests_of_one_trace_take_no_longer_each(reading: Any) -> None:
    """Each client of thousands has its server below spans that are not in the file."""
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    clients = [
        span("chat", n * 10, n * 10 + 1005, kind=3, number=n + 1, attributes=chat) for n in range(3000)
    ]
    servers = [
        span("llm_request", n * 10 + 1, n * 10 + 1001, number=n + 5001, parent=99999, attributes=VLLM)
        for n in range(3000)
    ]
    assert {r.engine for r in reading(*clients, *servers).requests} == {"vllm"}
