"""What a well set-up engine reaches of the floors in `physics`: an efficiency a device and phase.

Checked against measured prefill and decode times of public sources (tests/analyze/test_expected.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from phasetrace.analyze import physics
from phasetrace.analyze.physics import Ceiling, Shape


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Share of the data sheet's arithmetic that prefill reaches, and of its bandwidth that decode reaches."""

    prefill: float
    decode: float


# Splitwise (Patel et al. 2024) and inference-sim measured vLLM on A100 and H100; others are taken to be
# like them.
USUAL = Efficiency(prefill=0.60, decode=0.85)
BY_DEVICE: dict[str, Efficiency] = {
    "a100": Efficiency(prefill=0.60, decode=0.85),
    "h100": Efficiency(prefill=0.65, decode=0.85),
}
# Each layer of a tensor-parallel model waits for two all-reduces; their latency grows with every doubling
# of the devices. Of both together, from the same measurements (Llama-2-70B and BLOOM-176B on 2, 4 and 8
# devices).
ALL_REDUCE_S = 0.10e-3
# What they exchange, and what tensor parallelism does not divide (norms, residuals), as bytes a second of the
# activations: from prefill on 2, 4 and 8 devices there. Far below the links' data sheet, as the engine was.
ALL_REDUCE_BYTES_S = 80e9
# Scheduling, sampling and launching captured graphs: what a step takes beside reading, on 1 device
# (inference-sim).
HOST_STEP_S = 2e-3
# What each further sequence of a step adds beside its KV: scheduling it, its sampling, its share of attention
# kernels (0.09 to 0.5 ms in those measurements; engines of today are at the low end).
SEQUENCE_S = 0.1e-3


def efficiency(device: str | None) -> Efficiency:
    """Of a device by its name."""
    said = (device or "").lower()
    return next((found for name, found in BY_DEVICE.items() if name in said), USUAL)


def communication_s(shape: Shape, devices: float, tokens: float = 1) -> float:
    """Seconds a forward over `tokens` tokens waits for its all-reduces (two a layer).

    The slower of latency, layers x log2(devices) x ALL_REDUCE_S, and volume: a ring sends 2 (n - 1) / n
    times the activations, tokens x hidden size x 2 bytes (Thakur et al. 2005).
    """
    layers, n = shape.layers or 0, max(1.0, devices)
    sent = 2 * layers * tokens * (shape.hidden_size or 0) * 2 * 2 * (n - 1) / n
    return max(layers * math.log2(n) * ALL_REDUCE_S, sent / ALL_REDUCE_BYTES_S)


def decode_step_s(
    shape: Shape, ceiling: Ceiling, batch: float = 1, context: float = 0, device: str | None = None
) -> float:
    """Seconds of a decode step of a well set-up engine."""
    floor = physics.decode_floor_s(shape, ceiling, batch, context)
    waits = communication_s(shape, ceiling.devices, batch) + HOST_STEP_S + (batch - 1) * SEQUENCE_S
    return floor / efficiency(device).decode + waits


def prefill_s(
    shape: Shape,
    ceiling: Ceiling,
    new_tokens: float,
    context: float | None = None,
    chunk: float | None = None,
    device: str | None = None,
) -> float | None:
    """Seconds of a prefill of a well set-up engine; None where arithmetic is unknown."""
    floor = physics.prefill_floor_s(shape, ceiling, new_tokens, context, chunk)
    if floor is None:
        return None
    size = min(chunk or new_tokens, new_tokens)
    forwards = max(1.0, new_tokens / size) if size else 1.0
    waits = communication_s(shape, ceiling.devices, size) + HOST_STEP_S
    return floor / efficiency(device).prefill + forwards * waits
