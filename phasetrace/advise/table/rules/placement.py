"""Where the weights are: behind a slow link, or spread over devices that wait for each other."""

from __future__ import annotations

from phasetrace.advise.knobs import PARALLEL
from phasetrace.advise.table.answer import Answer, Tier, candidate, modelled, tried, without
from phasetrace.advise.table.placement import PLACED, unread
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.step import FAR
from phasetrace.advise.table.step import flat as _flat
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.analyze import expected, physics
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OFFLOADED = ("cpu_offload_gb", "offload_gb", "n_cpu_moe", "cpu_moe", "cpu_offload")
FASTEST_LINK = 64e9  # bytes a second: PCIe 5.0 x16; offloaded weights cannot come faster
USUAL_LINK = 25e9  # bytes a second: PCIe 4.0 x16 as measured
OWNS = 0.3  # of a step
SCALED = 0.75  # of the step with fewer devices is what twice as many should not exceed


def weight_offload(view: View) -> Answer:
    """Weights cross a slow link every step."""
    fix = (
        "Make the weights fit on the devices, all layers of them or none: quantise them (8-bit,"
        " 4-bit), add a device, or use a smaller model, and switch offload off (all layers on the GPU)."
    )
    pair = view.contrast(*OFFLOADED, *PLACED, "device_map")
    if (
        pair is not None
        and view.goal is not Goal.TTFT
        and (_placed(pair.worse) <= _placed(pair.better) or _partial(pair.worse))
    ):
        return tried(view, Cause.WEIGHT_OFFLOAD, pair, "weights kept off the device", fix)
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
    return candidate(
        view,
        Cause.WEIGHT_OFFLOAD,
        Tier.FAULT,
        tuple(said),
        fix,
        tradeoff="Quantising may cost quality.",
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


def interconnect(view: View) -> Answer:
    """Devices wait for each other."""
    fix = (
        "Communicate less or faster: fewer tensor-parallel devices (a single device where it fits)"
        " (replicas or pipeline instead),"
        " a faster link (NVLink), or custom all-reduce on."
    )
    s, g = view.subject, view.subject.group
    if g.communication_s and s.step and g.communication_s >= OWNS * _unit(view, s):
        part = min(1.0, g.communication_s / _unit(view, s))
        return candidate(
            view,
            Cause.INTERCONNECT,
            Tier.MEASURED,
            (
                f"communication between devices takes {seconds(g.communication_s * 1e9)},"
                f" {percent(part)} of a step",
            ),
            fix,
            tradeoff=("Fewer devices hold less KV cache."),
            gain=without(g.communication_s, _unit(view, s)),
            weight=part,
        )
    if g.communication_s and not s.step:
        return candidate(
            view,
            Cause.INTERCONNECT,
            Tier.MEASURED,
            (f"communication between devices takes {seconds(g.communication_s * 1e9)}",),
            fix,
            weight=0.4,
            confidence="medium",
        )
    split = view.contrast(*PARALLEL)
    if (
        split is not None
        and split.worse.devices == split.better.devices
        and _split(split.worse) > _split(split.better)
    ):
        return tried(view, Cause.INTERCONNECT, split, "tensor parallelism", fix)
    found = _unscaled(view)
    if found is not None:
        more, fewer, ratio = found
        return candidate(
            view,
            Cause.INTERCONNECT,
            Tier.MEASURED,
            (
                f"{more.devices:,.0f} devices take {times(ratio)} of the time of {fewer.devices:,.0f},"
                " where a share of"
                f" {percent(fewer.devices / more.devices)} would be perfect",
            ),
            fix,
            tradeoff=("Fewer devices hold less KV cache."),
            weight=max(0.3, 1 - fewer.devices / more.devices / ratio),
            gain=modelled(ratio, 0.3) if ratio > 1 else None,
            setting=more,
            confidence="high" if ratio > 1 else "medium",
        )
    if (
        s.devices > 1
        and s.slower is not None
        and s.slower >= FAR
        and s.shape
        and s.step
        and not g.host_gap_s
        and not _flat(view)
    ):
        if view.goal is Goal.TTFT or view.table.hardware.offloaded_gb or s.quantization:
            return None
        return candidate(
            view,
            Cause.INTERCONNECT,
            Tier.SUSPICION,
            (
                f"{s.devices:,.0f} devices, and a step takes {times(s.slower)} of what it should",
                "what the devices wait for was not measured",
            ),
            fix,
            weight=1 - 1 / s.slower,
            confidence="low",
        )
    if s.devices > 1 and s.slower is not None and s.shape and s.step and view.goal is not Goal.TTFT:
        waits = expected.communication_s(s.shape, s.devices, s.width or 1)
        unread = s.step - (s.step_floor or 0) / expected.efficiency(s.table.hardware.name).decode
        waits = min(waits, unread - expected.HOST_STEP_S)  # no more than what reading leaves of the step
        if waits >= OWNS * s.step and waits >= 0.5 * (s.step_floor or 0) and s.slower <= FAR:
            return candidate(
                view,
                Cause.INTERCONNECT,
                Tier.BOUND,
                (
                    f"{s.devices:,.0f} devices would read their share of the weights in"
                    f" {seconds((s.step_floor or 0) * 1e9)},"
                    f" and a step takes {seconds(s.step * 1e9)}",
                    f"waiting for each other in {s.shape.layers or 0:,.0f} layers takes about"
                    f" {seconds(waits * 1e9)} of it",
                ),
                fix,
                tradeoff=(
                    "Fewer devices hold less KV cache; captured graphs and a custom all-reduce"
                    " shorten it too."
                ),
                weight=waits / s.step,
            )
    g_prefill = s.prefill_with(s.new_tokens) if s.new_tokens else None
    if (
        view.goal is Goal.TTFT
        and s.devices > 1
        and s.prefill
        and g_prefill
        and s.alone
        and s.prefill >= FAR * g_prefill
        and s.shape
    ):
        moved = expected.communication_s(s.shape, s.devices, s.new_tokens or 1)
        return candidate(
            view,
            Cause.INTERCONNECT,
            Tier.SUSPICION,
            (
                f"{s.devices:,.0f} devices take {times(s.prefill / g_prefill)} of the time that this"
                " prefill should",
                f"over a fast link they would exchange it in {seconds(moved * 1e9)}",
            ),
            fix,
            weight=1 - g_prefill / s.prefill,
            confidence="low",
        )
    return None


def _unit(view: View, s: Setting) -> float:
    """What a stated communication time is a part of: a step, or the whole where it is longer than one."""
    spent = s.group.communication_s or 0
    step = s.step or 0
    return step if spent <= 1.1 * step else max(s.e2e or 0, s.prefill or 0, spent)


def _split(s: Setting) -> float:
    return s.knob(*PARALLEL) or 1.0


def _unscaled(view: View) -> tuple[Setting, Setting, float] | None:
    found = None
    for more in view.settings:
        for fewer in view.settings:
            if more.devices >= 1.5 * fewer.devices and (ratio := _time_ratio(view, more, fewer)) is not None:
                if ratio >= SCALED and (found is None or ratio > found[2]):
                    found = (more, fewer, ratio)
    if found is not None and (more := found[0]).shape and more.ceiling and found[2] < 1.0:
        # Small models end at the host's time of a step: then adding devices cannot help, and no link is at
        # fault.
        floor = physics.decode_floor_s(more.shape, more.ceiling, more.width or 1, more.context)
        if floor < 0.1 * expected.HOST_STEP_S:
            return None
    return found


def _time_ratio(view: View, more: Setting, fewer: Setting) -> float | None:
    for goal in (view.goal, Goal.TPOT, Goal.E2E, Goal.THROUGHPUT, Goal.TTFT):
        a, b = more.metric(goal), fewer.metric(goal)
        if a and b:
            return b / a if goal is Goal.THROUGHPUT else a / b
    return None
