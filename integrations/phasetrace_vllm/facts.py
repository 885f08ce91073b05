"""The engine's knobs as they are in effect, and the model's shape, read off vLLM's configuration."""

from __future__ import annotations

import os
from typing import Any

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder

ENGINE_KEY = 0  # an engine core is alone in its process

# Of each part of the configuration: numbers, switches and known words; nothing that names a path or a person
KNOBS = {
    "scheduler_config": (
        "max_num_seqs", "max_num_batched_tokens", "max_num_scheduled_tokens", "enable_chunked_prefill",
        "long_prefill_token_threshold", "async_scheduling", "policy", "stream_interval",
    ),
    "cache_config": (
        "block_size", "num_gpu_blocks", "num_gpu_blocks_override", "enable_prefix_caching", "cache_dtype",
        "gpu_memory_utilization", "sliding_window", "kv_cache_size_tokens", "kv_cache_max_concurrency",
    ),
    "parallel_config": (
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "data_parallel_rank",
        "data_parallel_index", "decode_context_parallel_size", "enable_expert_parallel",
    ),
    "model_config": ("enforce_eager", "max_model_len", "runner_type", "max_logprobs"),
    "speculative_config": ("num_speculative_tokens", "method", "prompt_lookup_max", "prompt_lookup_min"),
    "lora_config": ("max_loras", "max_lora_rank"),
}  # fmt: skip
SHAPE = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "d_kv"),
    "vocabulary": ("vocab_size",),
}
_WORD = 32  # a knob's value that is longer is no knob


def tell(recorder: Recorder, config: Any, key: int) -> None:
    """Tell both, once the engine stands; `key` is the model's in this process."""
    recorder.facts(layout.ENGINE, ENGINE_KEY, {"engine": "vllm", **knobs(config)})
    recorder.facts(layout.MODEL, key, model(config))


def knobs(config: Any) -> dict[str, Any]:
    """What of the configuration bears on time."""
    found: dict[str, Any] = {}
    for part, names in KNOBS.items():
        section = getattr(config, part, None)
        if section is None:
            continue
        for name in names:
            value = _plain(getattr(section, name, None))
            if value is not None:
                found[name] = value
    compilation = getattr(config, "compilation_config", None)
    if compilation is not None:
        found.update(_graphs(compilation))
    return found


def _graphs(compilation: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("mode", "cudagraph_mode"):
        value = getattr(getattr(compilation, name, None), "name", None)
        if isinstance(value, str) and len(value) <= _WORD:
            found["compilation_mode" if name == "mode" else name] = value.lower()
    sizes = getattr(compilation, "cudagraph_capture_sizes", None)
    if isinstance(sizes, (list, tuple)) and all(type(size) is int for size in sizes):
        found["cudagraph_capture_sizes"] = ",".join(str(size) for size in sorted(sizes))
    return found


def model(config: Any) -> dict[str, Any]:
    """The fields of the recording's ModelFacts that the configuration tells."""
    section = config.model_config
    hf = getattr(section, "hf_text_config", None) or getattr(section, "hf_config", None)
    facts: dict[str, Any] = {
        "name": _name(section),
        "architecture": _first(getattr(getattr(section, "hf_config", None), "architectures", None)),
        "dtype": str(getattr(section, "dtype", "")).replace("torch.", "") or None,
        "quantization": _plain(getattr(section, "quantization", None)),
        "max_context": _plain(getattr(section, "max_model_len", None)),
        "device": _plain(getattr(getattr(config, "device_config", None), "device_type", None)),
        "encoder_decoder": getattr(section, "is_encoder_decoder", None),
    }
    for fact, names in SHAPE.items():
        values = (getattr(hf, name, None) for name in names)
        facts[fact] = next((value for value in values if type(value) is int), None)
    if facts["heads"] is not None and facts["kv_heads"] is None:
        facts["kv_heads"] = facts["heads"]
    if facts["head_dim"] is None and facts["heads"] and facts["hidden_size"]:
        facts["head_dim"] = facts["hidden_size"] // facts["heads"]
    return {key: value for key, value in facts.items() if value is not None}


def _name(section: Any) -> str | None:
    """The last part of what the model is served as: a folder's path may say who the user is."""
    served = getattr(section, "served_model_name", None)
    name = _first(served) if isinstance(served, (list, tuple)) else served
    name = name or getattr(section, "model", None)
    return os.path.basename(str(name).rstrip("/")) or None if name else None


def _first(values: Any) -> str | None:
    return str(values[0]) if isinstance(values, (list, tuple)) and values else None


def _plain(value: Any) -> bool | int | float | str | None:
    """A number, a switch, a word or the name of an enum member; None for all else."""
    if type(value) in (bool, int, float):
        return value  # type: ignore[no-any-return]
    if isinstance(getattr(value, "name", None), str) and hasattr(value, "value"):
        value = value.name.lower()
    if type(value) is str and len(value) <= _WORD and "/" not in value:
        return value
    return None
