"""The log of a vLLM server -> what an engine config says: it prints its knobs and its model as it starts."""

from __future__ import annotations

import re
from typing import Any

_BEGIN = re.compile(r"Initializing a V\d+ LLM engine \(v([^)\s]{1,40})\) with config: (.*)")
_PAIR = re.compile(r"(\w+)=('[^']*'|[^,\s()]+)")  # of that line
_INSIDE = re.compile(r"\([^()]*\)")  # what an option's own options are: a draft model has a `model`, too
_STATED = re.compile(r"non-default args: \{(.*)\}")
_STATED_PAIR = re.compile(r"'(\w+)': ('[^']*'|[^,\s{\[]+)")
_NUMBERS = {
    "max_num_batched_tokens": re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=(\d+)"),
    "kv_cache_size_tokens": re.compile(r"KV cache size: (\d[\d,]{0,20}) tokens"),
    "weights_gib": re.compile(r"[Mm]odel loading took (\d{1,9}(?:\.\d{1,9})?) (?:GiB|GB)"),
}
_NAMES = {"max_seq_len": "max_model_len", "chunked_prefill_enabled": "enable_chunked_prefill"}
_KNOBS = frozenset(
    (
        *("max_num_seqs", "max_num_batched_tokens", "max_model_len", "tensor_parallel_size"),
        *("pipeline_parallel_size", "data_parallel_size", "enforce_eager", "kv_cache_dtype"),
        *("enable_prefix_caching", "enable_chunked_prefill", "gpu_memory_utilization", "block_size"),
        *("long_prefill_token_threshold", "async_scheduling", "num_gpu_blocks_override"),
    )
)
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_LONGEST_LINE = 100_000


def is_vllm_log(text: str) -> bool:
    """Whether a server of vLLM wrote this as it started."""
    return _BEGIN.search(text) is not None or _STATED.search(text) is not None


def from_vllm_log(text: str) -> dict[str, Any]:
    """The same as an engine config's document. Of paths only the last part is taken."""
    knobs: dict[str, Any] = {}
    model: dict[str, Any] = {}
    engine: dict[str, Any] = {"name": "vllm", "knobs": knobs}
    for line in text.splitlines():
        line = line[:_LONGEST_LINE]
        if (found := _STATED.search(line)) is not None:
            _take(knobs, model, _STATED_PAIR.findall(found[1]))
        if (found := _BEGIN.search(line)) is not None:
            engine["version"] = found[1]
            own = _INSIDE.sub("", found[2].split("compilation_config", 1)[0])
            _take(knobs, model, _PAIR.findall(own))
        for name, pattern in _NUMBERS.items():
            if (found := pattern.search(line)) is not None:
                knobs[name] = float(found[1].replace(",", "")) if "." in found[1] else _plain(found[1])
    return {"engine": engine, "model": _weighed(model, knobs)}


def _take(knobs: dict[str, Any], model: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    for key, text in pairs:
        name = _NAMES.get(key, key)
        value = _plain(text)
        if name in _KNOBS and value is not None:
            knobs[name] = value
        elif name == "model" and isinstance(value, str):
            model["name"] = value.rstrip("/").rsplit("/", 1)[-1]
        elif name == "dtype":
            model["dtype"] = str(value).removeprefix("torch.")
        elif name == "quantization" and value is not None:
            model["quantization"] = value
        elif name == "device_config":
            model["device"] = value


def _weighed(model: dict[str, Any], knobs: dict[str, Any]) -> dict[str, Any]:
    """The weights of all devices, and how many parameters they are where nothing is quantised."""
    gib = knobs.get("weights_gib")
    if isinstance(gib, (int, float)):
        ranks = [knobs.get(f"{kind}_parallel_size", 1) for kind in ("tensor", "pipeline")]
        if not all(type(number) is int for number in ranks):  # what they are is not known: nor is the whole
            return model
        devices = ranks[0] * ranks[1]
        model["weight_bytes"] = gib * 2**30 * devices
        each = _BYTES.get(model.get("dtype", "")) if "quantization" not in model else None
        if each is not None:
            model["parameters"] = model["weight_bytes"] / each
    return model


def _plain(text: str) -> bool | int | float | str | None:
    text = text.strip().strip("'")
    if text in ("True", "False"):
        return text == "True"
    if text == "None" or not text:
        return None
    number = text.replace(",", "")
    if re.fullmatch(r"\d{1,15}", number):
        return int(number)
    return float(number) if re.fullmatch(r"\d{1,9}\.\d{1,9}", number) else text
