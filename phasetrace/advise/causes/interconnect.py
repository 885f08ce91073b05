"""Communication between devices."""

from __future__ import annotations

from phasetrace.advise.knobs import PARALLEL
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Rule, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.step import FAR, flat
from phasetrace.advise.table.told import Told, modelled, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.analyze import expected, physics
from phasetrace.model import Goal
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Communicate less or faster: fewer tensor-parallel devices (a single device where it fits)"
        " (replicas or pipeline instead), a faster link (NVLink), or custom all-reduce on."
    ),
    tradeoff="Fewer devices hold less KV cache; captured graphs shorten the waits, too.",
    commands={
        "vllm": ("--tensor-parallel-size 1 --data-parallel-size N  # or --pipeline-parallel-size N",),
        "sglang": ("--tp-size 1 --dp-size N",),
        "tensorrt-llm": ("trtllm-serve --tp_size 1 --pp_size N",),
        "llama.cpp": ("llama-server --split-mode layer",),
    },
)
SCALED = 0.75  # of the step with fewer devices is what twice as many should not exceed


def in_table(view: View) -> Told | None:
    """It was measured, more devices are no faster, or a step takes longer than its share of the reading."""
    if view.subject.group.communication_s:
        found = _measured(view, view.subject, view.subject.group.communication_s)
        if found is not None:
            return found
    split = view.contrast(*PARALLEL)
    if split is not None and split.worse.devices == split.better.devices:
        if _split(split.worse) > _split(split.better):
            return tried(view, split, "tensor parallelism")
    return _no_faster(view) or (_in_prefill(view) if view.goal is Goal.TTFT else _in_decode(view))


def _measured(view: View, s: Setting, spent: float) -> Told | None:
    said = f"communication between devices takes {seconds(spent * 1e9)}"
    if not s.step:
        return Told(Tier.MEASURED, (said,), weight=0.4, confidence="medium")
    unit = _unit(s, spent)
    if spent < WORTH * unit:
        return None
    part = min(1.0, spent / unit)
    return Told(
        Tier.MEASURED, (f"{said}, {percent(part)} of a step",), gain=without(spent, unit), weight=part
    )


def _no_faster(view: View) -> Told | None:
    """More devices take about as long as fewer, and it is not the host's time of a small model's step."""
    found = _unscaled(view)
    if found is None:
        return None
    more, fewer, ratio = found
    return Told(
        Tier.MEASURED,
        (
            f"{more.devices:,.0f} devices take {times(ratio)} of the time of {fewer.devices:,.0f}, where a"
            f" share of {percent(fewer.devices / more.devices)} would be perfect",
        ),
        weight=max(0.3, 1 - fewer.devices / more.devices / ratio),
        gain=modelled(ratio, 0.3) if ratio > 1 else None,
        setting=more,
        confidence="high" if ratio > 1 else "medium",
    )


def _in_decode(view: View) -> Told | None:
    """A step takes longer than the devices' share of the reading: by what waiting takes, or by far more."""
    s = view.subject
    if s.devices <= 1 or s.slower is None or not s.shape or not s.step:
        return None
    if s.slower >= FAR and not s.group.host_gap_s and not flat(view):
        if view.table.hardware.offloaded_gb or s.quantization:
            return None
        return Told(
            Tier.SUSPICION,
            (
                f"{s.devices:,.0f} devices, and a step takes {times(s.slower)} of what it should",
                "what the devices wait for was not measured",
            ),
            weight=1 - 1 / s.slower,
            confidence="low",
        )
    floor = s.step_floor or 0.0
    unread = s.step - floor / expected.efficiency(s.table.hardware.name).decode
    waits = expected.communication_s(s.shape, s.devices, s.width or 1)
    waits = min(waits, unread - expected.HOST_STEP_S)  # no more than what reading leaves of the step
    if waits < WORTH * s.step or waits < 0.5 * floor or s.slower > FAR:
        return None
    return Told(
        Tier.BOUND,
        (
            f"{s.devices:,.0f} devices would read their share of the weights in {seconds(floor * 1e9)},"
            f" and a step takes {seconds(s.step * 1e9)}",
            f"waiting for each other in {s.shape.layers or 0:,.0f} layers takes about {seconds(waits * 1e9)}"
            " of it",
        ),
        weight=waits / s.step,
    )


def _in_prefill(view: View) -> Told | None:
    s = view.subject
    usual = s.prefill_with(s.new_tokens) if s.new_tokens else None
    if s.devices <= 1 or not s.alone or not s.shape or not s.prefill or not usual:
        return None
    if s.prefill < FAR * usual:
        return None
    moved = expected.communication_s(s.shape, s.devices, s.new_tokens or 1)
    return Told(
        Tier.SUSPICION,
        (
            f"{s.devices:,.0f} devices take {times(s.prefill / usual)} of the time that this prefill should",
            f"over a fast link they would exchange it in {seconds(moved * 1e9)}",
        ),
        weight=1 - usual / s.prefill,
        confidence="low",
    )


def _unit(s: Setting, spent: float) -> float:
    """What a stated communication time is a part of: a step, or the whole where it is longer than one."""
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


RULE = Rule(Cause.INTERCONNECT, WORDS, None, in_table)
