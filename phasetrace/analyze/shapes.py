"""Shapes of common models by name, from the `config.json` of each; for a table that only names its model.

A number that the user states goes before these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownShape:
    """Parameters (active ones a token for mixtures of experts), layers, KV heads, head dim, hidden size."""

    parameters: float
    layers: int
    kv_heads: int
    head_dim: int
    hidden_size: int
    active_parameters: float | None = None
    bytes_per_weight: float | None = None  # as published, where that is not 16 bits


# What each name must hold, all of it; the more exact one first.
SHAPES: tuple[tuple[tuple[str, ...], KnownShape], ...] = (
    (("codellama", "34b"), KnownShape(33.74e9, 48, 8, 128, 8192)),
    (("llama", "405b"), KnownShape(405.9e9, 126, 8, 128, 16384)),
    (("llama", "70b"), KnownShape(70.55e9, 80, 8, 128, 8192)),
    (("llama", "65b"), KnownShape(65.2e9, 80, 64, 128, 8192)),
    (("llama", "33b"), KnownShape(32.5e9, 60, 52, 128, 6656)),
    (("llama", "13b"), KnownShape(13.02e9, 40, 40, 128, 5120)),
    (("vicuna", "13b"), KnownShape(13.02e9, 40, 40, 128, 5120)),
    (("vicuna", "7b"), KnownShape(6.74e9, 32, 32, 128, 4096)),
    (("llama", "8b"), KnownShape(8.03e9, 32, 8, 128, 4096)),
    (("llama", "7b"), KnownShape(6.74e9, 32, 32, 128, 4096)),
    (("llama", "3.2", "3b"), KnownShape(3.21e9, 28, 8, 128, 3072)),
    (("llama", "3.2", "1b"), KnownShape(1.24e9, 16, 8, 64, 2048)),
    (("tinyllama",), KnownShape(1.1e9, 22, 4, 64, 2048)),
    (("mixtral", "8x22b"), KnownShape(140.6e9, 56, 8, 128, 6144, 39e9)),
    (("mixtral", "8x7b"), KnownShape(46.7e9, 32, 8, 128, 4096, 12.9e9)),
    (("mistral", "7b"), KnownShape(7.24e9, 32, 8, 128, 4096)),
    (("qwen3", "235b"), KnownShape(235e9, 94, 4, 128, 4096, 22e9)),
    (("qwen3", "30b", "a3b"), KnownShape(30.5e9, 48, 4, 128, 2048, 3.3e9)),
    (("qwen3", "32b"), KnownShape(32.8e9, 64, 8, 128, 5120)),
    (("qwen3", "14b"), KnownShape(14.77e9, 40, 8, 128, 5120)),
    (("qwen3", "8b"), KnownShape(8.19e9, 36, 8, 128, 4096)),
    (("qwen3", "4b"), KnownShape(4.02e9, 36, 8, 128, 2560)),
    (("qwen3", "1.7b"), KnownShape(2.03e9, 28, 8, 128, 2048)),
    (("qwen3", "0.6b"), KnownShape(0.75e9, 28, 8, 128, 1024)),
    (("qwen2.5", "72b"), KnownShape(72.7e9, 80, 8, 128, 8192)),
    (("qwen2.5", "32b"), KnownShape(32.8e9, 64, 8, 128, 5120)),
    (("qwen2.5", "14b"), KnownShape(14.77e9, 48, 8, 128, 5120)),
    (("qwen2.5", "7b"), KnownShape(7.62e9, 28, 4, 128, 3584)),
    (("qwen2.5", "3b"), KnownShape(3.09e9, 36, 2, 128, 2048)),
    (("qwen2.5", "1.5b"), KnownShape(1.54e9, 28, 2, 128, 1536)),
    (("qwen2.5", "0.5b"), KnownShape(0.494e9, 24, 2, 64, 896)),
    (("gemma", "2", "27b"), KnownShape(27.2e9, 46, 16, 128, 4608)),
    (("gemma", "2", "9b"), KnownShape(9.24e9, 42, 8, 256, 3584)),
    (("phi", "3", "mini"), KnownShape(3.82e9, 32, 32, 96, 3072)),
    (("falcon", "7b"), KnownShape(7.22e9, 32, 1, 64, 4544)),
    (("falcon", "40b"), KnownShape(41.8e9, 60, 8, 64, 8192)),
    (("opt", "30b"), KnownShape(29.97e9, 48, 56, 128, 7168)),
    (("opt", "13b"), KnownShape(12.85e9, 40, 40, 128, 5120)),
    (("bloom", "176b"), KnownShape(176.2e9, 70, 112, 128, 14336)),
    (("gpt-oss", "120b"), KnownShape(116.8e9, 36, 8, 64, 2880, 5.1e9, 0.56)),
    (("gpt-oss", "20b"), KnownShape(20.9e9, 24, 8, 64, 2880, 3.6e9, 0.66)),
    (("gpt2", "xl"), KnownShape(1.56e9, 48, 25, 64, 1600)),
)
_MIXTURE = re.compile(
    r"\b\d+(?:\.\d+)?b-a\d|\b\d+x\d+(?:\.\d+)?b|moe|deepseek-v[23]|deepseek-r1$", re.IGNORECASE
)


def known_shape(name: str | None) -> KnownShape | None:
    """The shape of the model of this name; None where it is not known."""
    said = (name or "").lower().replace(" ", "-").replace("_", "-")
    pieces = re.split(r"[-/:]", said)
    for needed, shape in SHAPES:
        if all(word in said if not word.endswith("b") else word in pieces for word in needed):
            return shape
    return None


def mixture_of_experts(name: str | None) -> bool:
    """Whether the name says that a token uses a part of the weights only (`30B-A3B`, `8x7B`, `MoE`)."""
    return bool(_MIXTURE.search((name or "").replace(" ", "-")))
