"""A model's shape, told without touching a device: its parameters' sizes and its configuration's numbers."""

from __future__ import annotations

from typing import Any

from phasetrace_agent import signals

# What the configurations of different models call the same number
NAMES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "d_kv"),
    "vocabulary": ("vocab_size",),
    "max_context": ("max_position_embeddings", "n_positions", "max_seq_len"),
}


def model_facts(model: Any) -> dict[str, Any]:
    """The fields of the recording's ModelFacts that this model tells."""
    config = getattr(model, "config", None)
    facts: dict[str, Any] = {"architecture": type(model).__name__, "name": _name(config)}
    facts.update(_shape(_text_config(config)))
    facts.update(_weights(model))
    quantization = getattr(config, "quantization_config", None)
    if quantization is not None:
        facts["quantization"] = _quantization(quantization)
        facts["parameters"] = None  # packed: their number cannot be read off
    facts["encoder_decoder"] = bool(getattr(config, "is_encoder_decoder", False))
    facts["compiled"] = hasattr(model, "_orig_mod") or getattr(model, "_compiled_call_impl", None) is not None
    return {key: value for key, value in facts.items() if value is not None}


def _name(config: Any) -> str | None:
    """The last part of the name: a local folder says nothing about time, and may say who the user is."""
    name = getattr(config, "_name_or_path", None) or getattr(config, "model_type", None)
    parts = [part for part in str(name or "").replace("\\", "/").split("/") if part]
    for part in parts:
        if part.startswith("models--"):  # the hub's cache, where the last part is a commit
            return part.rsplit("--", 1)[-1]
    return parts[-1] if parts else None


def _text_config(config: Any) -> Any:
    """The part of a configuration that describes the decoder."""
    try:
        return config.get_text_config(decoder=True)
    except Exception as error:
        signals.pass_on(error)
        return config


def _shape(config: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact, names in NAMES.items():
        value = next((v for v in (getattr(config, name, None) for name in names) if type(v) is int), None)
        if value is not None:
            found[fact] = value
    if "heads" in found:
        found.setdefault("kv_heads", 1 if getattr(config, "multi_query", False) is True else found["heads"])
        if "hidden_size" in found:
            found.setdefault("head_dim", found["hidden_size"] // found["heads"])
    return found


def _weights(model: Any) -> dict[str, Any]:
    parameters = size = offloaded = 0
    sizes: dict[str, int] = {}  # bytes by type of number
    devices: dict[str, int] = {}
    for parameter in model.parameters():
        count = parameter.numel()
        bytes_ = count * parameter.element_size()
        parameters += count
        size += bytes_
        sizes[str(parameter.dtype)] = sizes.get(str(parameter.dtype), 0) + bytes_
        if (
            parameter.device.type == "meta"
        ):  # where accelerate leaves a weight that it fetches for each forward
            offloaded += bytes_
        else:
            devices[parameter.device.type] = devices.get(parameter.device.type, 0) + bytes_
    if not parameters:
        return {}
    return {
        "parameters": parameters,
        "weight_bytes": size,
        "offloaded_bytes": offloaded,
        "dtype": max(sizes, key=lambda name: sizes[name]).replace("torch.", ""),
        "device": _device(model, devices),
    }


def _device(model: Any, devices: dict[str, int]) -> str | None:
    """Where forwards run: an accelerator if any weight is there, or if the device map names one."""
    map_ = getattr(model, "hf_device_map", None)
    if isinstance(map_, dict):
        for place in map_.values():
            kind = getattr(place, "type", None) or (
                "cuda" if isinstance(place, int) else str(place).split(":")[0]
            )
            if kind not in ("cpu", "disk", "meta"):
                return str(kind)
    accelerators = {kind: size for kind, size in devices.items() if kind != "cpu"}
    found = accelerators or devices
    return max(found, key=lambda kind: found[kind]) if found else None


def _quantization(config: Any) -> str | None:
    """The method's name; `load_in_4bit` and the like are told apart by their bits."""
    method = config.get("quant_method") if isinstance(config, dict) else getattr(config, "quant_method", None)
    name = str(getattr(method, "value", method)).lower()
    known = name.replace("_", "").replace("-", "")
    if not known.isalnum() or len(known) > 24:
        return "other"
    bits = config.get("bits") if isinstance(config, dict) else getattr(config, "bits", None)
    if getattr(config, "load_in_4bit", False) is True:
        bits = 4
    if getattr(config, "load_in_8bit", False) is True:
        bits = 8
    return f"{name}-{bits}bit" if type(bits) is int else name
