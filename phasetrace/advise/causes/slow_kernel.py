"""A dtype or quantisation path that is slower than the plain one."""

from __future__ import annotations

from dataclasses import replace

from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Words
from phasetrace.advise.table.contrast import SAME, Pair
from phasetrace.advise.table.placement import PLACED
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.step import FAR, flat
from phasetrace.advise.table.told import Gain, Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import seconds
from phasetrace.analyze.physics import bytes_of
from phasetrace.model import Goal
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Use a faster path: half precision (bfloat16, float16) to compute in, or a kernel made for this"
        " format and device (Marlin, fp8), else the plain unquantised dtype (float32 on a CPU without"
        " bfloat16)."
    ),
    tradeoff="Weights that are not quantised take more memory.",
    commands={
        "vllm": ("--dtype bfloat16", "--quantization awq_marlin  # or gptq_marlin, fp8"),
        "transformers": ("BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)",),
        "sglang": ("--dtype bfloat16 --quantization fp8",),
    },
)
SLOWER_BY = 1.5  # times plain weights: what is known of a step's time is off by less
ON_TIME = 1.5  # times a well set-up engine's step, by its bytes: then wide numbers are not what is slow
EAGER_LAYER_S = (
    0.9e-3  # of a step of transformers without graphs, for each layer, whatever the GPU (Llama, Qwen)
)
PLAIN_BYTES = 2.0  # of a plain 16-bit weight


def in_table(view: View) -> Told | None:
    """The user tried another dtype or path, or the numbers are those of one that is known to be slow."""
    for pair in view.pairs:
        changed = {"dtype", "quantization"} & set(pair.differs) or {
            name for name in pair.differs if _about_numbers(name)
        }
        if changed and pair.ratio >= SAME and _no_lighter_loss(pair):
            return tried(view, pair, " ".join(sorted(changed)))
    if view.goal is Goal.TTFT:
        return None
    s = view.subject
    why = _wide_numbers(view, s) or _slower_than_plain(view, s)
    if why is None:
        return None
    return Told(Tier.FAULT, (why,), weight=0.5, gain=_as_it_should(s), confidence="medium")


def _wide_numbers(view: View, s: Setting) -> str | None:
    """Numbers of 32 bits on a GPU, whose matrix units do not compute in them."""
    hardware = view.table.hardware
    if hardware.kind != "gpu" and (hardware.kind is not None or hardware.name is None):
        return None
    compute = str(s.knobs.get("bnb_4bit_compute_dtype") or s.knobs.get("compute_dtype") or "")
    if s.quantization:
        if (bytes_of(compute) or bytes_of(s.dtype)) != 4.0:
            return None
        return (
            f"{s.quantization} weights are computed in {compute or s.dtype}, which the device's"
            " matrix units do not do"
        )
    tried_others = any(x.dtype != s.dtype for x in view.settings)
    on_time = s.slower is not None and s.slower < ON_TIME
    stated = s.table.model.dtype and view.engine != "llama.cpp" and (s.tpot or s.throughput)
    if tried_others or on_time or not stated or bytes_of(s.dtype) != 4.0:
        return None
    return f"the model runs in {s.dtype}: twice the bytes of half precision, without the fast matrix units"


def _slower_than_plain(view: View, s: Setting) -> str | None:
    """Quantised weights that take longer than plain ones should, and nothing else that could be why."""
    if view.engine == "llama.cpp" and s.knob(*PLACED) is None:
        return None  # its layers may be anywhere
    if not s.quantization or not s.shape or s.step is None or s.devices >= 2:
        return None
    if s.shape.bytes_per_weight >= PLAIN_BYTES or (s.slower or 0) < FAR or flat(view) or s.group.host_gap_s:
        return None
    plain = s.step_with(replace(s.shape, bytes_per_weight=PLAIN_BYTES))
    if not plain or s.step < SLOWER_BY * plain:
        return None
    return (
        f"a step with {s.quantization} weights takes {seconds(s.step * 1e9)}; plain 16-bit weights would take"
        f" about {seconds(plain * 1e9)}"
    )


def _as_it_should(s: Setting) -> Gain | None:
    """What the plain path would take here; an engine without graphs stays at its own time of a layer."""
    if s.step is None or s.step_expected is None or s.shape is None:
        return None
    eager = (s.shape.layers or 0) * EAGER_LAYER_S if s.table.engine == "transformers" else 0.0
    ratio = s.step / max(s.step_expected, eager)
    return modelled(ratio, 0.5) if ratio > 1.2 else None


def _about_numbers(knob: str) -> bool:
    return any(
        word in knob.lower()
        for word in ("dtype", "quant", "kernel", "attention_backend", "attn_implementation", "flash_att")
    )


def _no_lighter_loss(pair: Pair) -> bool:
    """The worse one should not be slower for its bytes: it reads no more than the better one."""
    a, b = _bytes(pair.worse), _bytes(pair.better)
    gpu = pair.worse.table.hardware.kind != "cpu"
    if "float32" in str(pair.worse.dtype).lower() and (gpu or pair.ratio > 2.2):
        return True  # beyond its bytes: the matrix units of a GPU do not do it
    return a is None or b is None or a <= b * 1.05


def _bytes(s: Setting) -> float | None:
    return bytes_of(s.quantization) or bytes_of(s.dtype)


RULE = Rule(Cause.SLOW_KERNEL, WORDS, None, in_table)
