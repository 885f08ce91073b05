"""Each engine's spans become the same request, and what its numbers really mean is known."""

from __future__ import annotations

from typing import Any

import pytest

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
from phasetrace.model import Goal, Provenance, RequestStatus
from phasetrace.semconv import Cause
from tests.read.made_spans import BEGIN, LATENCY, MS, VLLM, at, reading, said, span

__all__ = ["reading"]  # the fixture


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


def test_a_stage_that_is_missing_is_named_with_what_would_tell_it(reading: Any) -> None:
    plain = {"module": "sglang::request", "gen_ai.usage.prompt_tokens": 9}
    found = reading(
        span(" Req abc", attributes=plain),
        span("prefill_forward", 300, 400, number=5, parent=1),
        span("decode_forward", 410, 990, number=6, parent=1),
    )
    assert "queue is unknown: no span `prefill_waiting` and no `gen_ai.latency.time_in_queue` of SGLang" in (
        said(found)
    )
    assert "prefill is unknown" not in said(found) and "decode is unknown" not in said(found)


def test_recording_is_advised_only_where_phasetrace_records(reading: Any) -> None:
    plain = {"module": "sglang::request", "gen_ai.usage.prompt_tokens": 9}
    sglang = reading(span(" Req abc", attributes=plain))
    assert "spans of SGLang do not say" in said(sglang) and "phasetrace run" not in said(sglang)
    assert "phasetrace run" not in "\n".join(breakdown(sglang).unsplit)
    verdict = diagnose(breakdown(sglang), goal=Goal.TTFT)
    assert verdict.cause == Cause.UNKNOWN and not verdict.findings[0].commands
    vllm = reading(span("llm_request", attributes=VLLM))
    assert "phasetrace run" in said(vllm) and "phasetrace run" in "\n".join(breakdown(vllm).unsplit)


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


def triton(*compute_ends: float, responses: int = 1) -> list[dict[str, Any]]:
    """The three spans of an inference over gRPC; more of an ensemble."""
    answers = [{"name": "INFER_RESPONSE_COMPLETE", "timeUnixNano": str(BEGIN + n * 100 * MS)} for n in (4, 9)]
    came = {"GRPC_WAITREAD_START": -5000, "GRPC_WAITREAD_END": 10, "GRPC_SEND_END": 1000}
    found = [
        span("InferRequest", -5000, 1000, events=came),
        span("my_model", 20, 990, number=2, parent=1, events={"REQUEST_START": 20, "QUEUE_START": 30}),
    ]
    found[0]["events"] += answers[:responses]
    for number, end in enumerate(compute_ends, 3):
        events = {"COMPUTE_START": end - 300, "COMPUTE_INPUT_END": end - 290, "COMPUTE_END": end}
        attributes = {"triton.model_name": "my_model"}
        found.append(span("compute", number=number, parent=2, events=events, attributes=attributes))
    found[1]["attributes"] = [{"key": "triton.model_name", "value": {"stringValue": "my_model"}}]
    return found


def test_tritons_moments_are_events(reading: Any) -> None:
    found = reading(*triton(950), service__name="triton-inference-server")
    (request,) = found.requests
    assert request.engine == "triton" and request.arrival_ns == BEGIN + 10 * MS
    assert at(request) == {"received": 20, "scheduled": 640, "last_token": 940, "finished": 990}
    assert not request.derived and "spans of Triton do not say" in said(found)


def test_a_triton_model_that_streams_has_a_first_answer(reading: Any) -> None:
    (request,) = reading(*triton(380, 950, responses=2)).requests
    assert at(request)["scheduled"] == 70 and at(request)["last_token"] == 940
    assert at(request)["first_token"] == 390


def test_tritons_backend_that_traces_itself_knows_better(reading: Any) -> None:
    engine = span("llm_request", 100, 900, number=9, parent=2, attributes=VLLM)
    assert [r.engine for r in reading(*triton(950), engine).requests] == ["vllm"]


def test_vllms_loading_is_its_start_and_no_request(reading: Any) -> None:
    code = {"code.namespace": "vllm.v1.worker.gpu_worker", "code.function": "Worker.init_device"}
    found = reading(
        span("Init device", 0, 50, number=7, attributes=code),
        span("Capture model", 50, 90, number=8, attributes=code),
        span("Capture model", 50, 90, number=9, attributes={"code.namespace": "cameras"}),
        span("llm_request", attributes=VLLM),
    )
    assert [(s.name, (s.end_ns - s.begin_ns) / MS) for s in found.stages] == [
        ("device-start", 50),
        ("graph-capture", 40),
    ]
    assert len(found.requests) == 1


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
