"""The least time that a phase can take: what must be read and computed, over what the device can do.

All units are SI: bytes, bytes a second, floating-point operations (a multiply-add is two), seconds. Sources:
[Pope] Pope et al. 2022, Efficiently Scaling Transformer Inference, sections 2.1 and 3; [Kaplan] Kaplan et al.
2020, Scaling Laws, table 1; [Williams] Williams et al. 2009, Roofline; [Shazeer] Shazeer 2019, Fast
Transformer Decoding.
"""

from __future__ import annotations

from dataclasses import dataclass

# Bytes of a weight or of a cached value; quantised formats carry their scales (group size 128).
BYTES = {
    "float64": 8.0,
    "float32": 4.0,
    "fp32": 4.0,
    "float16": 2.0,
    "fp16": 2.0,
    "half": 2.0,
    "bfloat16": 2.0,
    "bf16": 2.0,
    "fp8": 1.0,
    "float8": 1.0,
    "int8": 1.0,
    "8bit": 1.0,
    "w8a8": 1.0,
    "q8_0": 1.0625,
    "q4_0": 0.5625,
    "q4_k": 0.5938,
    "int4": 0.53,
    "4bit": 0.53,
    "nf4": 0.53,
    "awq": 0.53,
    "gptq": 0.53,
    "mxfp4": 0.53,
    "nvfp4": 0.5625,
}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model costs. For a mixture of experts, `active_parameters` are those one token uses."""

    parameters: float
    bytes_per_weight: float
    active_parameters: float | None = None
    layers: float | None = None
    kv_heads: float | None = None
    head_dim: float | None = None
    hidden_size: float | None = None
    kv_bytes: float = 2.0  # of one cached value

    @property
    def weight_bytes(self) -> float:
        """Bytes of all weights: parameters x bytes of one."""
        return self.parameters * self.bytes_per_weight

    @property
    def active(self) -> float:
        """Parameters that one token uses."""
        return self.active_parameters or self.parameters


@dataclass(frozen=True, slots=True)
class Ceiling:
    """All devices together: bytes a second, operations a second, bytes; None where unknown."""

    bandwidth: float
    flops: float | None = None
    memory: float | None = None
    devices: float = 1.0


def bytes_of(kind: str | None) -> float | None:
    """Bytes of a value of this dtype or quantisation, by the longest name found in it."""
    said = (kind or "").lower().replace("-", "").replace(" ", "")
    found = [name for name in BYTES if name in said]
    return BYTES[max(found, key=len)] if found else None


def kv_bytes_per_token(shape: Shape) -> float | None:
    """Bytes of KV cache that one token of one sequence takes.

    2 (keys and values) x layers x KV heads x head dim x bytes of a value. With grouped or multi-query
    attention the KV heads are fewer than the query heads [Shazeer].
    """
    if not shape.layers or not shape.kv_heads or not shape.head_dim:
        return None
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * shape.kv_bytes


def touched_weight_bytes(shape: Shape, tokens: float) -> float:
    """Bytes of weights that a forward over so many tokens reads.

    All of a dense model's. Of a mixture of experts, the share 1 - (1 - a)^tokens, where a token uses the
    share a of the parameters and experts are chosen evenly: a batch soon touches every expert.
    """
    share = min(1.0, shape.active / shape.parameters)
    return shape.weight_bytes * (1 - float((1 - share) ** max(1.0, tokens)))


def decode_floor_s(shape: Shape, ceiling: Ceiling, batch: float = 1, context: float = 0) -> float:
    """Seconds that a decode step takes at least: the slower of reading and computing [Pope 2.1, Williams].

    Reading: touched weights once, and the KV of every sequence, over bandwidth. Computing: 2 x active
    parameters x batch over arithmetic. Tensor parallelism divides both by the devices, which `ceiling` sums
    up already.
    """
    kv = (kv_bytes_per_token(shape) or 0.0) * context * batch
    reading = (touched_weight_bytes(shape, batch) + kv) / ceiling.bandwidth
    computing = 2 * shape.active * batch / ceiling.flops if ceiling.flops else 0.0
    return max(reading, computing)


def kv_share(shape: Shape, batch: float, context: float) -> float | None:
    """Of the bytes that a decode step reads, the part that is KV cache."""
    per_token = kv_bytes_per_token(shape)
    if per_token is None:
        return None
    kv = per_token * context * batch
    return kv / (kv + touched_weight_bytes(shape, batch))


def prefill_flops(shape: Shape, new_tokens: float, context: float | None = None) -> float:
    """Operations to read so many new tokens, of a prompt of `context` tokens (default: all new).

    2 x active parameters a token [Kaplan], and for attention 4 x layers x hidden size x the tokens before
    each: half the square for a causal mask.
    """
    whole = new_tokens if context is None else context
    before = whole - new_tokens / 2  # tokens before the average new one
    attention = 4 * (shape.layers or 0) * (shape.hidden_size or 0) * new_tokens * before
    return 2 * shape.active * new_tokens + attention


def prefill_floor_s(
    shape: Shape,
    ceiling: Ceiling,
    new_tokens: float,
    context: float | None = None,
    chunk: float | None = None,
) -> float | None:
    """Seconds that reading new prompt tokens takes at least; None where arithmetic is unknown.

    The slower of computing and reading the weights, which each chunk reads anew: n chunks cost n weight
    reads, so that below `ridge_tokens` a chunk costs as much as a full one.
    """
    if ceiling.flops is None:
        return None
    size = min(chunk or new_tokens, new_tokens)
    chunks = max(1.0, new_tokens / size) if size else 1.0
    reading = chunks * touched_weight_bytes(shape, size) / ceiling.bandwidth
    return max(prefill_flops(shape, new_tokens, context) / ceiling.flops, reading)


def ridge_tokens(shape: Shape, ceiling: Ceiling) -> float | None:
    """Tokens in one forward from which on arithmetic, not the weight read, bounds it [Williams].

    bytes of a weight x operations a second / (2 x bytes a second): some 150 to 300 on GPUs with 16-bit
    weights.
    """
    if ceiling.flops is None:
        return None
    return shape.bytes_per_weight * ceiling.flops / (2 * ceiling.bandwidth)


def sequences_that_fit(shape: Shape, ceiling: Ceiling, tokens: float, usable: float = 0.9) -> float | None:
    """Sequences of so many tokens whose KV fits beside the weights in the usable share of memory.

    0.9 is vLLM's default `gpu_memory_utilization`. Negative where the weights alone do not fit.
    """
    per_token = kv_bytes_per_token(shape)
    if per_token is None or ceiling.memory is None or not tokens:
        return None
    return (ceiling.memory * usable - shape.weight_bytes) / (per_token * tokens)
