"""Numbers that no device can do: faster than it reads or computes, or more than its memory holds."""

from __future__ import annotations

from collections.abc import Iterator

from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.stated import SERVERS
from phasetrace.advise.words import percent, seconds, times
from phasetrace.analyze import physics
from phasetrace.analyze.physics import Ceiling, Shape
from phasetrace.analyze.shapes import mixture_of_experts

BEYOND = 1.3  # times the memory: sizes are rounded, and a device has a little more or less than its name says
FASTER = 1.5  # times the data sheet's speed: rounding, and a device somewhat better than its name says
A_NODE = 8  # devices: what a table may be of that does not say how many there are
FASTEST_STEP_S = 1e-4  # no engine has written a token in a tenth of a millisecond, whatever the model


def against_device(s: Setting) -> Iterator[str]:
    """Faster than the device can read or compute, or more than its memory holds."""
    g = s.group
    stated = g.decode_s is not None or g.tpot_s is not None
    if stated and s.decode is not None and not g.speculative_tokens and (written := g.output_tokens or 0) > 2:
        if 0 <= s.decode < FASTEST_STEP_S * (written - 1):
            yield (
                f"{written - 1:,.0f} tokens in {seconds(s.decode * 1e9)} is impossible: no engine writes one"
                f" in {seconds(s.decode / (written - 1) * 1e9)}"
            )
            return
    shape = s.stated_shape  # an assumption contradicts nobody
    if shape is not None and s.ceiling is not None:
        yield from _too_fast(s, shape, s.ceiling)
        yield from _too_large(s, shape, s.ceiling)


def _too_fast(s: Setting, shape: Shape, ceiling: Ceiling) -> Iterator[str]:
    g, devices = s.group, 1 if s.counted else A_NODE
    sparse = (shape.active_parameters or shape.parameters) < shape.parameters
    if sparse or mixture_of_experts(s.table.model.name):
        return  # how much of it a step reads is not known
    drafts = g.speculative_tokens or any("specul" in name for name in s.knobs)
    weights = shape.weight_bytes / ceiling.bandwidth / devices
    if s.step and (not drafts or g.accepted_length) and s.step * FASTER < weights:
        yield (
            f"a step of {seconds(s.step * 1e9)} would read the weights {times(weights / s.step)} as fast as"
            " the device can: impossible"
        )
    uncached = s.knobs.get("enable_prefix_caching") is False or s.table.engine == "transformers"
    told = g.cached_tokens is not None or g.prefix_cache_hit_rate is not None or uncached
    if s.prefill and ceiling.flops and told and s.new_tokens:
        least = physics.prefill_flops(shape, s.new_tokens) / ceiling.flops
        if least / devices > 2.5 * s.prefill > 0:
            yield (
                f"prefill of {s.new_tokens:,.0f} tokens in {seconds(s.prefill * 1e9)} is"
                f" {percent(least / s.prefill)} of the device's arithmetic: impossible"
            )


def _too_large(s: Setting, shape: Shape, ceiling: Ceiling) -> Iterator[str]:
    g, memory = s.group, ceiling.memory
    away = any("offload" in name or "layers" in name or name == "device_map" for name in s.knobs)
    if not memory or not s.counted or away or s.table.hardware.offloaded_gb:
        return
    # Servers refuse to start where weights do not fit.
    if s.table.engine in SERVERS and shape.weight_bytes > BEYOND * memory:
        yield (
            f"{shape.weight_bytes / 1e9:,.0f} GB of weights do not fit {memory / 1e9:,.0f} GB of memory, and"
            " nothing is said of offload: impossible"
        )
    if g.batch and g.prompt_tokens and s.table.hardware.kind != "cpu" and shape.weight_bytes < memory:
        tokens = g.batch * (g.prompt_tokens + (g.output_tokens or 0))
        needed = shape.weight_bytes + (physics.kv_bytes_per_token(shape) or 0) * tokens
        if needed > 1.1 * memory:
            yield (
                f"weights and KV cache of {g.batch:,.0f} sequences need {needed / 1e9:,.0f} GB and the"
                f" devices have {memory / 1e9:,.0f}: they cannot have run together"
            )
