"""What is read off vLLM's objects, without vLLM."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_agent import layout
from phasetrace_vllm import KNOWN, extract, facts, refusal, version_of
from tests.integrations.vllm.fakes import named, request, scheduler

SECRET = "correct horse battery staple"


def core_request(**params: Any) -> Any:
    """An `EngineCoreRequest`."""
    return SimpleNamespace(
        request_id="cmpl-1-abc",
        sampling_params=SimpleNamespace(**params),
        prompt_token_ids=[1, 2, 3],
        lora_request=None,
        priority=0,
        trace_headers=None,
    )


def test_an_arrival_says_what_bears_on_time_and_nothing_a_user_wrote() -> None:
    asked = core_request(
        temperature=0.0,
        max_tokens=20,
        top_p=1.0,
        stop=[SECRET],
        bad_words=[SECRET],
        structured_outputs=SimpleNamespace(json=SECRET),
        extra_args={"note": SECRET},
    )
    asked.lora_request = SimpleNamespace(lora_name=SECRET)
    told = extract.arrival(asked)
    assert told["settings"] == {
        "max_tokens": 20,
        "temperature": 0.0,
        "stop_strings": True,
        "bad_words": True,
        "structured": True,
        "lora": True,
    }
    assert (told["mode"], told["external"]) == ("greedy", "cmpl-1-abc")
    assert told["sequences"] == [{"prompt": 3, "padding": 0}]
    assert SECRET not in json.dumps(told)


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("00-" + "a" * 32 + "-" + "b" * 16 + "-01", True),
        ("00-" + "A" * 32 + "-" + "B" * 16 + "-00", True),
        ("cc-" + "a" * 32 + "-" + "b" * 16 + "-01-more", True),
        ("00-" + "0" * 32 + "-" + "b" * 16 + "-01", False),
        ("00-" + "a" * 32 + "-" + "0" * 16 + "-01", False),
        ("ff-" + "a" * 32 + "-" + "b" * 16 + "-01", False),
        ("00-" + "x" * 32 + "-" + "b" * 16 + "-01", False),
        ("nonsense", False),
        ("", False),
    ],
)
def test_traceparent(value: str, known: bool) -> None:
    told = extract.traceparent(value)
    expected = {"trace": "a" * 32, "span": "b" * 16, "begin_wall": None}
    assert told == (expected if known else None)


HEAD = request("head", prompt=8)


def head(status: str) -> Any:
    """The head of the queue in this state."""
    waiting = request("head", prompt=8)
    waiting.status = named(status)
    return waiting


@pytest.mark.parametrize(
    ("queue", "total", "preempted", "expected"),
    [
        (scheduler(), 0, False, "none"),
        (scheduler(HEAD, running=4), 4, False, "slots"),
        (scheduler(HEAD, running=1), 64, False, "budget"),
        (scheduler(HEAD, running=4), 4, True, "kv"),
        (scheduler(HEAD, running=1), 1, False, "kv"),
        (scheduler(HEAD, running=1, pause_state=named("PAUSED_ALL")), 0, False, "paused"),
        (scheduler(head("WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR")), 0, False, "grammar"),
        (scheduler(head("WAITING_FOR_REMOTE_KVS")), 0, False, "remote-kv"),
        (
            scheduler(HEAD, scheduler_config=SimpleNamespace(enable_chunked_prefill=False)),
            60,
            False,
            "budget",
        ),
    ],
)
def test_why_the_head_of_the_queue_waits(queue: Any, total: int, preempted: bool, expected: str) -> None:
    code = extract.head_reason(queue, {}, total, preempted)
    assert layout.HEAD_REASONS[code] == expected


def test_a_full_set_of_adapters_is_a_reason_to_wait() -> None:
    def with_lora(name: str, number: int) -> Any:
        asked = request(name)
        asked.lora_request = SimpleNamespace(lora_int_id=number)
        return asked

    queue = scheduler(with_lora("b", 2), lora_config=SimpleNamespace(max_loras=1))
    queue.requests["a"] = with_lora("a", 1)
    assert layout.HEAD_REASONS[extract.head_reason(queue, {"a": 1}, 1, False)] == "lora"
    queue.waiting[0].lora_request.lora_int_id = 1
    assert layout.HEAD_REASONS[extract.head_reason(queue, {"a": 1}, 1, False)] == "kv"


@pytest.mark.parametrize(
    ("version", "hooked"),
    [("0.32.0", True), ("0.33.1.dev4+g12", True), ("0.31.9", False), ("1.0.0", False), ("", False)],
)
def test_only_known_versions_are_hooked(version: str, hooked: bool) -> None:
    reason = refusal(version)
    assert (reason is None) == hooked
    if not hooked and "." in version:
        assert reason is not None
        assert "{}.{}".format(*KNOWN[0]) in reason


def test_the_version_is_found_where_it_is() -> None:
    assert version_of(None, SimpleNamespace(__version__="0.32.0")) == "0.32.0"
    assert version_of(None, None) == ""


def configuration(**more: Any) -> Any:
    """A `VllmConfig`."""
    return SimpleNamespace(
        scheduler_config=SimpleNamespace(max_num_seqs=8, policy="fcfs", async_scheduling=False),
        cache_config=SimpleNamespace(block_size=16, enable_prefix_caching=True, cache_dtype="auto"),
        model_config=SimpleNamespace(
            model=f"/home/{SECRET}/models/tiny",
            enforce_eager=True,
            max_model_len=1024,
            dtype="torch.float32",
            hf_config=SimpleNamespace(
                architectures=["LlamaForCausalLM"],
                num_hidden_layers=2,
                hidden_size=128,
                num_attention_heads=4,
                vocab_size=540,
            ),
        ),
        compilation_config=SimpleNamespace(
            mode=named("NONE"), cudagraph_mode=named("FULL_AND_PIECEWISE"), cudagraph_capture_sizes=[2, 1]
        ),
        **more,
    )


def test_knobs_are_numbers_switches_and_known_words() -> None:
    told = facts.knobs(configuration())
    assert told == {
        "max_num_seqs": 8,
        "policy": "fcfs",
        "async_scheduling": False,
        "block_size": 16,
        "enable_prefix_caching": True,
        "cache_dtype": "auto",
        "enforce_eager": True,
        "max_model_len": 1024,
        "compilation_mode": "none",
        "cudagraph_mode": "full_and_piecewise",
        "cudagraph_capture_sizes": "1,2",
    }


def test_the_model_is_told_by_its_shape_and_the_last_part_of_its_name() -> None:
    told = facts.model(configuration())
    assert told == {
        "name": "tiny",
        "architecture": "LlamaForCausalLM",
        "dtype": "float32",
        "max_context": 1024,
        "layers": 2,
        "hidden_size": 128,
        "heads": 4,
        "kv_heads": 4,
        "head_dim": 32,
        "vocabulary": 540,
    }
    assert SECRET not in json.dumps([told, facts.knobs(configuration())])
