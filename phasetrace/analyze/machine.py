"""What the device allows: ceilings measured on it, else bounds that hold for any of its kind."""

from __future__ import annotations

from phasetrace.model import Ceilings, ModelFacts

# The least memory bandwidth, in bytes a second, of devices that people run language models on: one channel of
# DDR4 reached from one core; an NVIDIA T4 (320 GB/s) less a third; the first Apple M1. A step that takes many
# times what these would need is not bound by reading weights on any device of that kind.
SLOWEST_BANDWIDTH = {"cpu": 8e9, "cuda": 200e9, "mps": 60e9}
BYTES = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "float8_e4m3fn": 1,
}  # of the cache; others are cached in 2


def weight_floor_ns(model: ModelFacts | None, ceilings: Ceilings | None) -> float | None:
    """Nanoseconds to read every weight once: weight bytes / bandwidth. None where either is unknown.

    Every decode step reads all weights of a dense model, whatever the batch (Pope et al. 2022, section 2.1).
    """
    if model is None or not model.weight_bytes or ceilings is None:
        return None
    return model.weight_bytes / ceilings.bandwidth_bytes_s * 1e9


def slowest_step_ns(model: ModelFacts | None, cached_tokens: float = 0) -> float | None:
    """Nanoseconds to read all weights and so many tokens' KV once on the slowest device of the model's kind.

    None where the model's size or kind of device is unknown.
    """
    if model is None or not model.weight_bytes or model.device not in SLOWEST_BANDWIDTH:
        return None
    read = model.weight_bytes + cached_tokens * (kv_bytes_per_token(model) or 0)
    return read / SLOWEST_BANDWIDTH[model.device] * 1e9


def kv_bytes_per_token(model: ModelFacts) -> int | None:
    """Bytes of KV cache a token of one sequence: 2 x layers x KV heads x head dim x bytes of the dtype."""
    heads = model.kv_heads or model.heads
    if not model.layers or not heads or not model.head_dim:
        return None
    return 2 * model.layers * heads * model.head_dim * BYTES.get(model.dtype or "", 2)
