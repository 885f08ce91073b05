"""Weights cross a slow link every step."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.placement import PLACED, unread
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, seconds
from phasetrace.analyze.machine import slowest_step_ns
from phasetrace.model import Goal, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Make the weights fit on the devices, all layers of them or none: quantise them (8-bit, 4-bit), add"
        " a device, or use a smaller model, and switch offload off (all layers on the GPU)."
    ),
    tradeoff="Quantised weights may cost quality; where offloading stays, a batch shares transfers.",
    commands={
        "vllm": ("--cpu-offload-gb 0 --quantization fp8",),
        "transformers": (
            "AutoModelForCausalLM.from_pretrained(name, device_map={'': 0},\n"
            "    quantization_config=BitsAndBytesConfig(load_in_4bit=True))",
        ),
        "llama.cpp": ("llama-server --n-gpu-layers 999  # with a quantisation that fits",),
    },
)
SURE = 0.5  # of the forward passes: with more, nothing else can be what takes them
FASTEST_LINK = 64e9  # bytes a second: PCIe 5.0 x16; no host link that weights cross is faster
OFFLOADED = ("cpu_offload_gb", "offload_gb", "n_cpu_moe", "cpu_moe", "cpu_offload")
USUAL_LINK = 25e9  # bytes a second: PCIe 4.0 x16 as measured


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """The process said how much is offloaded; every step moves it."""
    model = evidence.model
    if model is None or not model.offloaded_bytes or not model.weight_bytes:
        return None
    steps = evidence.decode_steps
    forward = evidence.forward_ns(Phase.DECODE)
    prefill = evidence.forward_ns(Phase.PREFILL)
    if not steps or not forward:
        return Measure("decode steps, to set their time against the bytes that move")
    least = model.offloaded_bytes / FASTEST_LINK * 1e9
    resident = slowest_step_ns(model) or 0.0
    saved = max(least * steps, forward - resident * steps)
    return Seen(
        min(saved, forward),
        evidence=(
            f"{model.offloaded_bytes / 1e9:.3g} of {model.weight_bytes / 1e9:.3g} GB weights are offloaded",
            f"{count(steps, 'step')} move them each time: at least {seconds(least)} a step over the fastest"
            f" link, a step takes {seconds(forward / steps)}",
        ),
        confidence="high" if saved >= SURE * forward else "medium",
        prediction=predict(
            evidence,
            Saving(
                first_ns=min(prefill, least * len(evidence.requests)),
                decode_ns=min(saved, forward),
                least=min(0.9, least * steps / max(saved, 1.0)),
                most=1.05,
            ),
        ),
    )


def in_table(view: View) -> Told | None:
    """Weights are not on the device, as stated or since they do not fit, and steps are as slow as that."""
    pair = view.contrast(*OFFLOADED, *PLACED, "device_map")
    if (
        pair is not None
        and view.goal is not Goal.TTFT
        and (_placed(pair.worse) <= _placed(pair.better) or _partial(pair.worse))
    ):
        return tried(view, pair, "weights kept off the device")
    s, h = view.subject, view.table.hardware
    away = (h.offloaded_gb or s.knob("cpu_offload_gb", "offload_gb") or 0) * 1e9
    layers, total = s.knob(*PLACED), view.table.model.layers or (s.shape.layers if s.shape else None)
    if not away and layers is not None and total and 0 <= layers < total and s.shape:
        away = s.shape.weight_bytes * (1 - layers / total)
    if (
        not away
        and view.table.model.name
        and s.shape
        and s.ceiling
        and s.ceiling.memory
        and view.engine in ("transformers", "llama.cpp", "other")
    ):
        if s.shape.weight_bytes > s.ceiling.memory * 1.1 and h.kind != "cpu":
            away = s.shape.weight_bytes - 0.9 * s.ceiling.memory
    if not away and unread(s) and s.shape:
        away = s.shape.weight_bytes
    if (
        away <= 0
        or view.goal is Goal.TTFT
        or (s.step is not None and s.step < away / (FASTEST_LINK * 1.5) and not _host_computes(view))
    ):
        return None
    link = (h.host_link_gb_s or 0) * 1e9 or USUAL_LINK
    crossing = away / link
    said = [
        f"{away / 1e9:,.1f} GB of the weights are not on the device"
        + (f": {layers:,.0f} of {total:,.0f} layers are" if layers is not None and total else "")
    ]
    gain = None
    if s.step is not None:
        said.append(
            f"a token takes {seconds(s.step * 1e9)}: {away / s.step / 1e9:,.1f} GB a second, where"
            " device memory gives hundreds"
        )
        on_device = s.step_expected
        gain = modelled(s.step / on_device, 0.5) if on_device and on_device < s.step else None
    return Told(
        Tier.FAULT,
        tuple(said),
        gain=gain,
        weight=max(0.5, min(0.95, crossing / s.step)) if s.step else 0.6,
        confidence="high" if h.offloaded_gb or layers is not None or s.knob(*OFFLOADED) else "medium",
    )


def _placed(s: Setting) -> float:
    return (s.knob(*PLACED) or 0) - (s.knob(*OFFLOADED) or 0) * 1e3


def _partial(s: Setting) -> bool:
    layers = s.knob(*PLACED)
    return layers is not None and 0 < layers < ((s.shape.layers if s.shape else None) or 1e9)


def _host_computes(view: View) -> bool:
    return view.engine == "llama.cpp"  # its host part computes where it is, and sends only activations


RULE = Rule(Cause.WEIGHT_OFFLOAD, WORDS, in_steps, in_table)
