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
SLOWER_BY = 1.15  # times: a path that should be faster, or as fast
EAGER_LAYER_S = (
    0.9e-3  # of a step of transformers without graphs, for each layer, whatever the GPU (Llama, Qwen)
)
PLAIN_BYTES = 2.0  # of a plain 16-bit weight


def in_table(view: View) -> Told | None:
    """The user tried another dtype or path, or the numbers are those of one that is known to be slow."""
    for pair in view.pairs:
        changed = {"dtype", "quantization"} & set(pair.differs) or {
            n for n in pair.differs if _about_numbers(n)
        }
        if changed and pair.ratio >= SAME and _no_lighter_loss(pair):
            return tried(view, pair, " ".join(sorted(changed)))
    s = view.subject
    hardware = view.table.hardware
    gpu = hardware.kind == "gpu" or (hardware.kind is None and hardware.name is not None)
    compute = str(s.knobs.get("bnb_4bit_compute_dtype") or s.knobs.get("compute_dtype") or "")
    wide = bytes_of(compute) or (bytes_of(s.dtype) if s.quantization else None)
    said: list[str] = []
    if gpu and s.quantization and wide == 4.0:
        said.append(
            f"{s.quantization} weights are computed in {compute or s.dtype}, which the device's"
            " matrix units do not do"
        )
    elif (
        gpu
        and not any(x.dtype != s.dtype for x in view.settings)
        and (s.slower is None or s.slower >= 1.5)
        and not s.quantization
        and bytes_of(s.dtype) == 4.0
        and s.table.model.dtype
        and view.engine != "llama.cpp"
        and (s.tpot or s.throughput)
    ):
        said.append(
            f"the model runs in {s.dtype}: twice the bytes of half precision, without the fast matrix units"
        )
    if (
        not said
        and not (view.engine == "llama.cpp" and s.knob(*PLACED) is None)  # its layers may be anywhere
        and s.quantization
        and s.shape
        and s.step is not None
        and s.devices < 2
        and s.shape.bytes_per_weight < PLAIN_BYTES
    ):
        plain = s.step_with(replace(s.shape, bytes_per_weight=PLAIN_BYTES))
        if (
            plain
            and s.step >= SLOWER_BY * 1.3 * plain
            and (s.slower or 0) >= FAR
            and not flat(view)
            and not s.group.host_gap_s
        ):
            said.append(
                f"a step with {s.quantization} weights takes {seconds(s.step * 1e9)}; plain 16-bit"
                f" weights would take about {seconds(plain * 1e9)}"
            )
    if not said or view.goal is Goal.TTFT:
        return None
    return Told(
        Tier.FAULT,
        tuple(said),
        weight=0.5,
        gain=_as_it_should(s),
        confidence="medium",
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
