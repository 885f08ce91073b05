"""Records of requests, as engines put them into answers and logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.analyze import breakdown
from phasetrace.errors import PhasetraceError
from phasetrace.model import Recording
from phasetrace.read import read
from tests.read.made_spans import at, said

LLAMA = {
    "choices": [{"message": {"content": "x"}}],
    "created": 1756597116,
    "id": "chatcmpl-1",
    "model": "m.gguf",
    "usage": {"completion_tokens": 22, "prompt_tokens": 2143},
    "timings": {
        "cache_n": 2115,
        "prompt_n": 28,
        "prompt_ms": 448.0,
        "predicted_n": 22,
        "predicted_ms": 1317.5,
    },
}
TENSORRT = {
    "request_id": 7,
    "perf_metrics": {
        "timing_metrics": {
            "server_arrival_time": 99.9,
            "arrival_time": 100.0,
            "first_scheduled_time": 100.5,
            "first_token_time": 101.0,
            "last_token_time": 105.0,
        },
        "kv_cache_metrics": {"num_reused_blocks": 3},
    },
}
SGLANG = {
    "text": "x",
    "meta_info": {
        "id": "abc",
        "finish_reason": {"type": "length", "length": 16},
        "prompt_tokens": 100,
        "completion_tokens": 16,
        "cached_tokens": 64,
        "e2e_latency": 2.0,
        "request_received_ts": 1756597116.0,
        "api_server_dispatch_finish_ts": 1756597116.25,
        "queue_time": 0.25,
        "forward_entry_time": 5000.0,
        "prefill_finished_time": 5000.5,
        "request_finished_ts": 1756597118.0,
        "response_sent_to_client_ts": 1756597118.0,
    },
}
DYNAMO = {
    "schema": "dynamo.request.trace.v1",
    "event_type": "request_end",
    "event_time_unix_ms": 1756597118000,
    "request": {
        "request_id": "r1",
        "model": "m",
        "input_tokens": 10,
        "output_tokens": 20,
        "cached_tokens": 5,
        "request_received_ms": 1756597116000,
        "total_time_ms": 2000.0,
        "ttft_ms": 100.0,
        "prefill_wait_time_ms": 20.0,
        "prefill_time_ms": 70.0,
        "avg_itl_ms": 100.0,
    },
}
OFFLINE = {
    "metrics": {
        "arrival_time": 1743978286.0,
        "first_scheduled_time": 1743978286.75,
        "first_token_time": 1743978288.0,
        "last_token_time": 1743978293.0,
        "finished_time": 1743978293.25,
        "time_in_queue": 0.75,
    },
    "model": "m",
    "num_input_tokens": 170,
    "num_generated_tokens": 9,
}


def found(path: Path, *items: Any) -> Recording:
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return read(path)


@pytest.mark.parametrize(
    ("item", "engine", "moments", "tokens"),
    [
        (
            LLAMA,
            "llama.cpp",
            {"received": 0, "scheduled": 0, "first_token": 448, "last_token": 1765.5, "finished": 1765.5},
            (2143, 2115, 22),
        ),
        (
            TENSORRT,
            "tensorrt-llm",
            {"received": 100, "scheduled": 600, "first_token": 1100, "last_token": 5100, "finished": 5100},
            (None, None, None),
        ),
        (
            SGLANG,
            "sglang",
            {"received": 250, "scheduled": 500, "first_token": 1000, "finished": 2000},
            (100, 64, 16),
        ),
        (
            DYNAMO,
            "dynamo",
            {"received": 10, "scheduled": 30, "first_token": 100, "finished": 2000},
            (10, 5, 20),
        ),
        (
            OFFLINE,
            "vllm",
            {"received": 0, "scheduled": 750, "first_token": 2000, "last_token": 7000, "finished": 7250},
            (170, None, 9),
        ),
    ],
)
@pytest.mark.parametrize("shape", [lambda item: item, lambda item: [item]], ids=["object", "array"])
def test_each_record_is_a_request(
    item: Any, engine: str, moments: dict[str, float], tokens: Any, shape: Any, tmp_path: Path
) -> None:
    (request,) = found(tmp_path / "r.json", shape(item)).requests
    assert request.engine == engine
    assert at(request) == pytest.approx(moments, abs=1e-3)
    assert (request.prompt_tokens, request.cached_tokens, request.output_tokens) == tokens


def test_many_lines_with_others_in_between(tmp_path: Path) -> None:
    tool = {"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "tool": {"duration_ms": 5}}
    result = found(tmp_path / "r.jsonl", DYNAMO, tool, {"event": DYNAMO}, {"event": tool}, 5, "x")
    assert len(result.requests) == 2 and breakdown(result).requests


def test_what_does_not_say_when_is_laid_one_after_the_other(tmp_path: Path) -> None:
    bare = {"timings": LLAMA["timings"]}
    result = found(tmp_path / "r.jsonl", bare, bare)
    first, second = result.requests
    assert first.finished_ns is not None and second.arrival_ns > first.finished_ns
    assert "do not say when requests came" in said(result)


def test_times_of_two_clocks_are_left_out(tmp_path: Path) -> None:
    mixed = {"metrics": {**OFFLINE["metrics"], "arrival_time": 6843.6}}  # type: ignore[dict-item]
    with pytest.raises(PhasetraceError):
        found(tmp_path / "r.jsonl", mixed)
    result = found(tmp_path / "r.jsonl", mixed, OFFLINE)
    assert len(result.requests) == 1 and "two clocks" in said(result)


def test_sglangs_first_chunk_is_the_first_token_of_a_stream(tmp_path: Path) -> None:
    info = {k: v for k, v in SGLANG["meta_info"].items() if "forward" not in k and "prefill" not in k}  # type: ignore[attr-defined]
    streamed = {"choices": [{"meta_info": {**info, "response_sent_to_client_ts": 1756597116.75}}]}
    (request,) = found(tmp_path / "r.jsonl", streamed).requests
    assert at(request)["first_token"] == pytest.approx(750)


def test_vllms_request_state_mixes_two_clocks_and_is_read_by_its_intervals(tmp_path: Path) -> None:
    state = {
        "num_generation_tokens": 17,
        "arrival_time": 1756597116.0,
        "queued_ts": 5000.25,
        "scheduled_ts": 5000.5,
        "first_token_ts": 5001.0,
        "last_token_ts": 5003.0,
        "first_token_latency": 1.25,
        "is_corrupted": False,
    }
    path = tmp_path / "outputs.jsonl"
    path.write_text(json.dumps({"request_id": "0", "metrics": state, "num_cached_tokens": 8}) + "\n")
    (request,) = read(path).requests
    assert at(request) == {
        "received": 500,
        "scheduled": 750,
        "first_token": 1250,
        "last_token": 3250,
        "finished": 3250,
    }
    assert (request.output_tokens, request.cached_tokens) == (17, 8)
