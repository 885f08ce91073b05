"""A decode step against what the device allows: at its bound, bound by KV, or far above."""

from __future__ import annotations

from dataclasses import replace

from phasetrace.advise.table.answer import Answer, Tier, candidate, modelled, tried
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.step import FAR, FLAT, HALF, NEAR
from phasetrace.advise.table.step import flat as _flat
from phasetrace.advise.table.step import stepped as _stepped
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.analyze.physics import bytes_of
from phasetrace.model import Goal
from phasetrace.semconv import Cause

READS = 0.38  # of the step is reading, by the data sheet: with less, something else is what takes the time
KV_OWNS = 0.38  # of the bytes read: above, halving the KV cache brings more than most fixes of the weights
LONG_CONTEXT = 2000  # tokens: below, the KV cache of a sequence is a hundredth of most models' weights
SEEN = 0.15  # of what a step reads: from there on a growing KV cache can be what makes it longer
LONGER = 2.0  # times the context, between two groups
EAGER = ("enforce_eager", "disable_cuda_graph", "no_cuda_graph")
# Times: what a static cache and a compiled step win in transformers, from about 0.9 ms a layer to 0.3 ms; its
# generation loop stays in Python. Engines that capture the whole step come down to what `expected` says.
COMPILED = 3.0
LAUNCHES_S = 10e-3  # of a step, for each layer, at the most: ten times what eager Python takes on a fast core
MANY_LAYERS = 100  # where their number is not known


def bandwidth_bound(view: View) -> Answer:
    """Each step takes about the time to read weights and KV once."""
    s = _stepped(view)
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
    if view.goal is Goal.E2E and s.decode is not None and s.e2e and s.decode < 0.5 * s.e2e:
        return None
    lighter = replace(s.shape, bytes_per_weight=s.shape.bytes_per_weight * HALF)
    then, now = s.step_with(lighter), s.step_expected
    part = s.decode / s.e2e if view.goal is Goal.E2E and s.decode and s.e2e else 1.0
    ratio = 1 / (1 - part * (1 - then / now)) if then and now else None
    quantised = s.shape.bytes_per_weight < 1.5
    return candidate(
        view,
        Cause.BANDWIDTH_BOUND,
        Tier.BOUND,
        (
            f"a step takes {seconds(s.step * 1e9)}; reading {s.shape.weight_bytes / 1e9:,.1f} GB of"
            " weights and the KV cache takes at least"
            f" {seconds(s.step_floor * 1e9)} on this device",
            f"{percent(min(1.0, s.step_floor / s.step))} of the memory bandwidth is used, {width:,.0f}"
            " at a time",
        ),
        ("Use a smaller model or fewer active weights" if quantised else "Use fewer weight bytes")
        + (
            ": quantised (fp8, 8-bit, 4-bit) weights with a fast kernel; or a device with more memory"
            " bandwidth, or tensor parallel; a larger batch shares each read."
        ),
        tradeoff="Quantising may cost quality, and brings little where the batch is large.",
        gain=modelled(ratio, 0.4) if ratio and not quantised else None,
        weight=0.3,
        setting=s,
        confidence="high" if _flat(view) else "medium",
    )


def kv_growth(view: View) -> Answer:
    """Reading the KV cache of long contexts owns the step."""
    fix = (
        "Read fewer KV cache bytes: an 8-bit (fp8) KV cache, a shorter context, a sliding window,"
        " or fewer sequences at a time."
    )
    trade = "A smaller cache may cost quality; a shorter context loses text."
    if view.goal is Goal.TTFT:
        return None
    grown = None
    for worse in view.settings:
        for better in view.settings:
            if (
                worse.context >= LONGER * better.context > 0
                and (worse.context >= LONG_CONTEXT or (worse.kv_part or 0) >= SEEN)
                and _close(worse.width, better.width)
                and worse.tpot
                and better.tpot
            ):
                ratio = worse.tpot / better.tpot
                if ratio >= FLAT and (grown is None or ratio > grown[2]):
                    grown = (worse, better, ratio)
    if grown is not None and grown[0].knobs.get("use_cache") is not False:
        worse, better, ratio = grown
        return candidate(
            view,
            Cause.KV_GROWTH,
            Tier.MEASURED,
            (
                f"a token takes {times(ratio)} as long at {worse.context:,.0f} tokens of context as at"
                f" {better.context:,.0f}"
                f" ({seconds((worse.tpot or 0) * 1e9)} and {seconds((better.tpot or 0) * 1e9)})",
                "the batch is the same: the KV cache is what grows",
            ),
            fix,
            tradeoff=trade,
            gain=modelled(1 / (1 - (1 - 1 / ratio) * HALF)),
            weight=(1 - 1 / ratio) * HALF,
            setting=worse,
            confidence="high" if worse.alone or worse.group.batch else "medium",
        )
    s = _stepped(view)
    if (
        s is None
        or s.slower is None
        or s.slower > NEAR
        or s.kv_part is None
        or s.kv_part < KV_OWNS
        or not s.group.prompt_tokens
    ):
        return None
    return candidate(
        view,
        Cause.KV_GROWTH,
        Tier.BOUND,
        (
            f"{percent(s.kv_part)} of what a step reads is KV cache ({s.context:,.0f} tokens in each of"
            f" {s.width or 1:,.0f} sequences)",
            f"a step takes {seconds((s.step or 0) * 1e9)}, and reading it all at least"
            f" {seconds((s.step_floor or 0) * 1e9)}",
        ),
        fix,
        tradeoff=trade,
        gain=modelled(1 / (1 - s.kv_part * HALF / max(1.0, s.slower))),
        weight=max(0.32, s.kv_part * HALF),
        setting=s,
    )


def launch_bound(view: View) -> Answer:
    """Steps take the same whatever they do, far above the floor: host and launch overhead."""
    if view.goal is Goal.TTFT:
        return None
    fix = (
        "Launch less: capture decode in CUDA graphs (no eager mode), compile the decode step with a"
        " static cache, or raise the batch, which is almost free here."
    )
    trade = "Capture takes time at start and memory; new shapes are captured anew."
    pair = view.contrast(*EAGER, "cudagraph_mode", "compile", "torch_compile", "cuda_graph")
    if pair is not None and pair.worse.group.order != "first" and _eager(pair.worse) is not False:
        return tried(view, Cause.LAUNCH_BOUND, pair, "graphs off", fix, trade)
    s = _stepped(view)
    if s is None or s.step is None or s.table.hardware.kind == "cpu":
        return None
    if s.step > LAUNCHES_S * ((s.shape.layers if s.shape else None) or MANY_LAYERS):
        return None  # no host is that slow
    flat = _flat(view)
    far = s.slower is not None and s.slower >= FAR
    near = s.slower is not None and s.slower < NEAR
    eager = _eager(s)
    if (
        near
        or s.group.host_gap_s
        or _known_reason(view, s)
        or not (far or (flat and s.slower is None and eager))
    ):
        return None
    if (s.quantization and not flat and not eager) or (s.devices > 1 and not flat):
        return None  # a slow quantised path and communication are far above the floor too
    if not (flat or eager or view.engine == "transformers"):
        return None
    said = [
        f"a step takes {seconds(s.step * 1e9)}"
        + (f", {times(s.slower)} of what a well set-up engine takes here" if s.slower else "")
    ]
    if flat:
        said.append(
            f"it takes the same with {flat[1].width or 0:,.0f} sequences as with"
            f" {flat[0].width or 0:,.0f}: what takes the time is not their work"
        )
    if eager:
        said.append("graphs are switched off")
    gain = (
        modelled(min(s.slower, COMPILED) if view.engine == "transformers" else s.slower, 0.5)
        if s.slower
        else None
    )
    return candidate(
        view,
        Cause.LAUNCH_BOUND,
        Tier.FAULT,
        tuple(said),
        fix,
        tradeoff=trade,
        gain=gain,
        setting=s,
        weight=1 - 1 / s.slower if s.slower else 0.4,
        confidence="high" if flat and far else "medium",
    )


def _known_reason(view: View, s: Setting) -> bool:
    """Whether a setting is known that makes steps slow by itself."""
    same = all(x.dtype == s.dtype for x in view.settings)  # else the other one tells what it matters
    wide = same and bytes_of(s.dtype) == 4.0 and s.table.hardware.kind != "cpu"  # not for matrix units
    return bool(s.table.hardware.offloaded_gb) or s.knobs.get("use_cache") is False or wide


def _eager(s: Setting) -> bool | None:
    """Whether graphs are switched off; None where nothing says."""
    for name in EAGER:
        if name in s.knobs:
            return bool(s.knobs[name])
    for name in ("cuda_graph", "compile", "torch_compile"):
        if name in s.knobs:
            return not s.knobs[name]
    return None


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return max(one, other) <= 1.25 * min(one, other)
