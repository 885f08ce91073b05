"""Each step runs near the time to read weights and KV once."""

from __future__ import annotations

from dataclasses import replace

from phasetrace.advise.causes.kv_growth import KV_OWNS
from phasetrace.advise.causes.long_output import OWNS
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.step import HALF, NEAR, flat, stepped
from phasetrace.advise.table.told import Told, modelled
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze.machine import weight_floor_ns
from phasetrace.model import Goal, Phase
from phasetrace.semconv import Cause

SHARED = (
    ": quantised (fp8, 8-bit, 4-bit) weights with a fast kernel; or a device with more memory bandwidth, or"
    " tensor parallel; a larger batch shares each read."
)
LIGHTER = f"Use a smaller model or fewer active weights{SHARED}"
WORDS = Words(
    fix=f"Use fewer weight bytes{SHARED}",
    tradeoff=(
        "Quantised weights may cost quality, and win little where the batch is large: then arithmetic is"
        " the bound."
    ),
    commands={
        "vllm": ("--quantization fp8",),
        "sglang": ("--quantization fp8",),
        "tgi": ("--quantize fp8",),
        "llama.cpp": ("llama-quantize model.gguf Q4_K_M",),
        "transformers": (
            "quantized = TorchAoConfig('int8_weight_only')\n"
            "AutoModelForCausalLM.from_pretrained(name, quantization_config=quantized)",
        ),
    },
)
NEAR_FLOOR = 0.6  # floor over measured: kernels that read weights reach 60 to 90 % of a measured bandwidth
READS = 0.38  # of the step is reading, by the data sheet: with less, something else is what takes the time


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """A recorded step takes about as long as reading the weights once, at the bandwidth that was measured."""
    decode = evidence.phase_ns(Phase.DECODE)
    if evidence.share(decode) < OWNS or evidence.step is None or evidence.goal is Goal.TTFT:
        return None
    floor = weight_floor_ns(evidence.model, evidence.ceilings)
    if floor is None:
        return Measure(_missing(evidence))
    reached = floor / evidence.step.typical_ns
    if reached < NEAR_FLOOR:
        return None
    steps = evidence.decode_steps
    return Seen(
        decode,
        evidence=(
            f"a step takes {seconds(evidence.step.typical_ns)}; reading the weights once takes"
            f" {seconds(floor)} ({percent(reached)} of it)",
        ),
        prediction=predict(evidence, Saving(decode_ns=floor / 2 * steps, least=0.5, most=1.0)),
        tier=Tier.BOUND,
    )


def _missing(evidence: Evidence) -> str:
    bandwidth = "the machine's memory bandwidth (`phasetrace bench` measures it, --engine-config states it)"
    size = "the model's size (--engine-config states it)"
    sized = evidence.model is not None and evidence.model.weight_bytes
    return " and ".join([*([] if evidence.ceilings else [bandwidth]), *([] if sized else [size])])


def in_table(view: View) -> Told | None:
    """A step takes what it does on a well set-up engine, and most of that is reading weights."""
    s = stepped(view)
    if (
        s is None
        or view.goal is Goal.TTFT
        or s.shape is None
        or s.slower is None
        or s.step_floor is None
        or s.step is None
    ):
        return None
    if s.slower > NEAR or s.step_floor < READS * s.step or (s.kv_part or 0.0) >= KV_OWNS:
        return None
    width = s.width or 1
    if view.goal is Goal.E2E and s.decode is not None and s.e2e and s.decode < OWNS * s.e2e:
        return None
    lighter = replace(s.shape, bytes_per_weight=s.shape.bytes_per_weight * HALF)
    then, now = s.step_with(lighter), s.step_expected
    part = s.decode / s.e2e if view.goal is Goal.E2E and s.decode and s.e2e else 1.0
    ratio = 1 / (1 - part * (1 - then / now)) if then and now else None
    quantised = s.shape.bytes_per_weight < 1.5
    return Told(
        Tier.BOUND,
        (
            f"a step takes {seconds(s.step * 1e9)}; reading {s.shape.weight_bytes / 1e9:,.1f} GB of"
            " weights and the KV cache takes at least"
            f" {seconds(s.step_floor * 1e9)} on this device",
            f"{percent(min(1.0, s.step_floor / s.step))} of the memory bandwidth is used, {width:,.0f}"
            " at a time",
        ),
        fix=LIGHTER if quantised else "",
        gain=modelled(ratio, 0.4) if ratio and not quantised else None,
        weight=0.3,
        setting=s,
        confidence="high" if flat(view) else "medium",
    )


RULE = Rule(Cause.BANDWIDTH_BOUND, WORDS, in_steps, in_table)
