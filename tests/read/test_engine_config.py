"""What is stated beside a trace fills what the trace does not say, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phasetrace.cli import main
from phasetrace.errors import UsageError
from phasetrace.model import Provenance
from phasetrace.read import EngineConfig, engine_config
from tests import builders
from tests.read import writers

STATED: dict[str, Any] = {
    "engine": {"name": "vllm", "version": "0.11.0", "knobs": {"max_num_batched_tokens": 64, "x": [1]}},
    "model": {"name": "m", "dtype": "bfloat16", "parameters": 7e9, "bytes_per_weight": 2, "layers": 32},
    "hardware": {"name": "H100", "kind": "gpu", "count": 2, "memory_bandwidth_gb_s": 3350, "tflops": 989},
    "shared_prefix_tokens": 10,
}


def stated(path: Path, document: Any) -> EngineConfig:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return engine_config(path)


def test_all_of_it_is_understood(tmp_path: Path) -> None:
    config = stated(tmp_path / "c.json", STATED)
    assert config.ceilings is not None and config.ceilings.bandwidth_bytes_s == 6700e9
    assert config.ceilings.flops_s == 1978e12
    assert config.model is not None and config.model.weight_bytes == 14_000_000_000
    assert config.model.device == "cuda" and config.model.layers == 32
    assert config.facts["max_num_batched_tokens"] == 64 and config.facts["hardware_name"] == "H100"
    assert "x" not in config.facts


def test_the_trace_counts_more(tmp_path: Path) -> None:
    config = stated(tmp_path / "c.json", STATED)
    own = builders.process(facts={"max_num_batched_tokens": 2048}, engines={"vllm": "0.32.0"})
    recorded = builders.recording(builders.request("a"), processes=(own,))
    found = config.beside(recorded)
    assert found.processes[0].facts["max_num_batched_tokens"] == 2048
    assert found.processes[0].engines == {"vllm": "0.32.0"}
    assert found.requests[0].model == builders.MODEL.key


def test_a_trace_that_says_nothing(tmp_path: Path) -> None:
    config = stated(tmp_path / "c.json", STATED)
    recorded = builders.recording(
        builders.request("a", model=None, engine="unknown"), processes=(), models={}
    )
    found = config.beside(recorded)
    assert found.requests[0].engine == "vllm" and found.requests[0].model in found.models
    assert found.processes[0].engines == {"vllm": "0.11.0"}


def test_a_shared_prefix_is_cached_after_the_first_request(tmp_path: Path) -> None:
    stated_too = STATED | {"engine": {"knobs": {"enable_prefix_caching": True}}}
    first = builders.request("a")
    later = replace(first, id="b", arrival_ns=first.arrival_ns + 1)
    found = stated(tmp_path / "c.json", stated_too).beside(builders.recording(first, later))
    assert [r.cached_tokens for r in found.requests] == [None, 10]
    assert found.requests[1].provenance("cached_tokens") is Provenance.DERIVED


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"engine": {"knobs": 5}}, "c.json: engine.knobs is no object"),
        ("nonsense", "neither a JSON object nor the log"),
        ("[1]", "says nothing"),
        ("{}", "says nothing"),
        ({"engine": 5}, "engine is no object"),
        ({"model": {"parameters": "many"}}, "model.parameters"),
        ({"hardware": {"memory_bandwidth_gb_s": -1}}, "hardware.memory_bandwidth_gb_s"),
        ({"hardware": {"tflops": True}}, "hardware.tflops"),
        ({"hardware": {"tflops": 10**400}}, "hardware.tflops"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_key(document: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        stated(tmp_path / "c.json", document)
    assert "c.json" in str(caught.value) and "\n" not in str(caught.value)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, config = tmp_path / "t.pb", tmp_path / "c.json"
    trace.write_bytes(writers.protobuf(writers.spans()))
    config.write_text(json.dumps(STATED))
    assert main(["diagnose", str(trace), "--engine-config", str(config), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["engine"] == {"name": "vllm", "version": "0.11.0"}
    assert main(["diagnose", str(trace), "--engine-config", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err


LOG = """\
INFO 01-20 10:00:00 [__init__.py:216] Automatically detected platform cuda.
(APIServer pid=1) INFO 01-20 10:00:01 [utils.py:233] non-default args: {'model_tag': '/home/me/secret/m', \
'model': '/home/me/secret/CodeLlama-34b-Instruct-hf', 'api_key': ['sk1'], 'max_num_seqs': 32}
(APIServer pid=1) INFO 01-20 10:00:02 [scheduler.py:205] Chunked prefill is enabled with \
max_num_batched_tokens=64.
(EngineCore_DP0 pid=2) INFO 01-20 10:00:03 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: \
model='/home/me/secret/CodeLlama-34b-Instruct-hf', speculative_config=None, dtype=torch.bfloat16, \
max_seq_len=4096, tensor_parallel_size=2, quantization=None, enforce_eager=False, kv_cache_dtype=auto, \
device_config=cuda, structured_outputs_config=StructuredOutputsConfig(backend='auto'), seed=0, \
enable_prefix_caching=True, chunked_prefill_enabled=True, compilation_config={"level":3}
(EngineCore_DP0 pid=2) INFO 01-20 10:00:30 [gpu_model_runner.py:2653] Model loading took 31.4286 GiB and 9 s
(EngineCore_DP0 pid=2) INFO 01-20 10:00:40 [kv_cache_utils.py:1087] GPU KV cache size: 40,592 tokens
"""


def test_the_log_of_a_server_is_a_config_too(tmp_path: Path) -> None:
    config = stated(tmp_path / "server.log", LOG)
    assert (config.engine, config.version) == ("vllm", "0.11.0")
    assert config.facts == {
        "max_num_seqs": 32,
        "max_num_batched_tokens": 64,
        "max_model_len": 4096,
        "tensor_parallel_size": 2,
        "enforce_eager": False,
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "weights_gib": 31.4286,
        "kv_cache_size_tokens": 40592,
    }
    model = config.model
    assert model is not None and model.name == "CodeLlama-34b-Instruct-hf" and model.device == "cuda"
    assert model.parameters == pytest.approx(33.7e9, rel=0.01) and model.dtype == "bfloat16"
    assert model.layers == 48  # by its name, from the table of known models
    assert "secret" not in repr(config) and "sk1" not in repr(config)


def test_the_log_of_a_real_server() -> None:
    config = engine_config(Path(__file__).with_name("made") / "vllm.log")
    assert (config.engine, config.version) == ("vllm", "0.32.0")
    assert config.facts == {
        "max_num_seqs": 16,
        "max_num_batched_tokens": 512,
        "max_model_len": 1024,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "data_parallel_size": 1,
        "enforce_eager": True,
        "kv_cache_dtype": "auto",
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "kv_cache_size_tokens": 262_144,
    }
    model = config.model
    assert model is not None
    assert (model.name, model.dtype, model.device) == ("small-llama", "float32", "cpu")
    assert model.parameters is None  # vLLM for CPUs does not print what its weights take


def test_a_draft_model_is_not_the_model(tmp_path: Path) -> None:
    drafted = "speculative_config=SpeculativeConfig(method='eagle', model='draft', num_spec_tokens=4)"
    log = LOG.replace("speculative_config=None", drafted)
    assert log != LOG
    model = stated(tmp_path / "server.log", log).model
    assert model is not None and model.name == "CodeLlama-34b-Instruct-hf"


def test_a_known_device_needs_no_numbers(tmp_path: Path) -> None:
    ceilings = stated(tmp_path / "c.json", {"hardware": {"name": "H100-SXM", "count": 2}}).ceilings
    assert ceilings is not None and ceilings.bandwidth_bytes_s == 6700e9 and "data sheet" in ceilings.source


@pytest.mark.parametrize("size", ["two", "1.5", "True", "1e9"])
def test_a_log_whose_number_of_devices_is_none_says_no_weights(size: str, tmp_path: Path) -> None:
    broken = LOG.replace("tensor_parallel_size=2", f"tensor_parallel_size={size}")
    assert broken != LOG
    config = stated(tmp_path / "server.log", broken)
    assert config.model is None or config.model.weight_bytes is None


@pytest.mark.parametrize("number", ["31...4286", "31.4.2", "9" * 400])
def test_a_log_whose_numbers_are_broken_says_nothing_by_them(number: str, tmp_path: Path) -> None:
    config = stated(tmp_path / "server.log", LOG.replace("31.4286", number))
    assert config.model is None or config.model.weight_bytes is None
