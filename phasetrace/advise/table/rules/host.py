"""The device waits for the host: scheduler, garbage collector, too few cores, a slow consumer."""

from __future__ import annotations

import re

from phasetrace.advise.table.answer import Answer, Tier, candidate, modelled, tried, without
from phasetrace.advise.table.rules.placement import unread
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OWNS = 0.15  # of a step: DESIGN.md section 8, what is worth a change
BUSY = 0.85  # of the cores: the host has nothing left
IDLE = 0.6  # of the device's time is used: it waits for somebody
MANY = 8  # sequences: with so many, there is always work for the device
STALLS = 3.0  # times a step: a stall is seen beside ordinary steps
OVERLAPS = (
    "async_scheduling",
    "num_scheduler_steps",
    "disable_overlap_schedule",
    "enable_overlap_schedule",
    "multi_step",
    "disable_async_output_proc",
    "skip_tokenizer_init",  # no detokenising
)
FEW_CORES = 4  # for an engine on a GPU: server, engine core, tokeniser and detokeniser want one each


def host_gap(view: View) -> Answer:
    """The device waits between steps."""
    if view.goal is Goal.TTFT:
        return None
    fix = (
        "Take host work out from between steps: asynchronous (overlapped, multi-step) scheduling,"
        " incremental detokenisation"
        " over a window of fixed length, fewer Python objects a step, a newer engine version."
    )
    pair = view.contrast(*OVERLAPS)
    if pair is not None:
        return tried(view, Cause.HOST_GAP, pair, "host work between the steps", fix)
    timed = [s for s in view.settings if s.group.host_gap_s]
    if timed:
        s = max(timed, key=lambda x: x.group.host_gap_s or 0)
        gap = s.group.host_gap_s or 0.0
        step = s.step or (gap + s.step_expected if s.step_expected else None)
        part = min(0.95, gap / step) if step else 0.25
        if part < OWNS * 0.8:
            return None
        least = min(timed, key=lambda x: x.group.host_gap_s or 0)
        grows = gap >= 1.4 * (least.group.host_gap_s or gap)
        return candidate(
            view,
            Cause.HOST_GAP,
            Tier.MEASURED,
            (
                (f"the device waits {seconds(gap * 1e9)} for the host in each step")
                + (f", {percent(part)} of it" if step else ""),
                *(
                    (
                        f"the gap grows from {seconds((least.group.host_gap_s or 0) * 1e9)} ({_size(least)})"
                        f" to that ({_size(s)})",
                    )
                    if grows
                    else ()
                ),
            ),
            fix,
            gain=without(gap, step) if s.tpot else None,
            weight=max(part, 0.16),
            seconds=gap * (s.group.output_tokens or 1),
            setting=s,
            confidence="high" if step and s.group.cpu_utilization is not None else "medium",
        )
    s, g = view.subject, view.subject.group
    unit = s.step if s.step and (g.post_engine_s or 0) <= s.step else s.e2e
    if g.post_engine_s and unit and g.post_engine_s >= OWNS * unit:
        return candidate(
            view,
            Cause.HOST_GAP,
            Tier.MEASURED,
            (f"after the engine, the host takes {seconds(g.post_engine_s * 1e9)}",),
            fix,
            gain=without(g.post_engine_s, unit),
            weight=min(0.9, g.post_engine_s / unit),
        )
    many = (g.running or g.batch or 0) >= MANY and s.slower is None
    if g.gpu_utilization is not None and g.gpu_utilization <= IDLE and many and view.goal is not Goal.E2E:
        return candidate(
            view,
            Cause.HOST_GAP,
            Tier.SUSPICION,
            (
                f"the device is used for {percent(g.gpu_utilization)} of the time, with"
                f" {g.running or g.batch:,.0f} sequences to work on",
            ),
            fix,
            weight=0.5,
            confidence="low",
        )
    if (
        g.gpu_utilization is not None
        and g.gpu_utilization <= IDLE
        and s.slower is not None
        and s.slower >= 1.8
        and (s.width or 0) > 1
    ):
        return candidate(
            view,
            Cause.HOST_GAP,
            Tier.FAULT,
            (
                f"the device is used for {percent(g.gpu_utilization)} of the time, and a step takes"
                f" {times(s.slower)} of what it should",
            ),
            fix,
            gain=modelled(min(s.slower, 1 / max(0.05, g.gpu_utilization)), 0.5),
            weight=1 - g.gpu_utilization,
            confidence="medium",
        )
    return None


def _size(s: Setting) -> str:
    if s.group.output_tokens:
        return f"{s.group.output_tokens:,.0f} output tokens"
    return f"{s.width:,.0f} sequences" if s.width else s.name


def gc_pause(view: View) -> Answer:
    """Periodic stalls."""
    s, g = view.subject, view.subject.group
    stalled = next((x for x in view.settings if x.group.stall_s), None)
    collecting = [n for p in view.pairs for n in p.differs if re.search(r"(?:^|_)gc(?:_|$)", n.lower())]
    pair = view.contrast(*collecting)
    fix = (
        "Freeze the garbage collector's long-lived objects after warm-up (gc.freeze()), or raise"
        " its thresholds, so that full collections skip them."
    )
    if pair is not None:
        return tried(view, Cause.GC_PAUSE, pair, "the garbage collector as it is", fix)
    if stalled is None:
        return None
    s, g = stalled, stalled.group
    stall, period = g.stall_s or 0.0, g.stall_period_s
    if s.tpot and stall < STALLS * s.tpot:
        return None
    if g.prefilling_concurrently or g.preemptions:
        return None
    part = min(0.9, stall / period) if period else 0.2
    tail = view.goal in (Goal.TPOT, Goal.E2E)
    said = [
        f"everything stops for {seconds(stall * 1e9)}"
        + (f" every {seconds(period * 1e9)}: regular, so no other request's work" if period else "")
    ]
    if not period:
        return None
    return candidate(
        view,
        Cause.GC_PAUSE,
        Tier.FAULT,
        tuple(said),
        fix,
        tradeoff="Frozen objects are never freed.",
        gain=modelled(1 / (1 - part), 0.3) if s.tpot else None,
        weight=max(part, 0.2 if tail else 0.16),
        setting=s,
        confidence="medium",
    )


def cpu_starved(view: View) -> Answer:
    """Too few cores, or badly bound threads."""
    fix = (
        "Give the engine more CPU cores (container limit, no pinning to few), set threads to the"
        " physical cores, and bind them to one NUMA node."
    )
    pair = view.contrast(
        "cpu_cores",
        "threads",
        "OMP_NUM_THREADS",
        "VLLM_CPU_OMP_THREADS_BIND",
        "num_threads",
        "n_threads",
        "threads_batch",
        "intra_op_num_threads",
        "numa",
    )
    if pair is not None:
        names = [
            n for n in pair.differs if n in ("cpu_cores", "threads") or "thread" in n.lower() or n == "numa"
        ]
        return tried(view, Cause.CPU_STARVED, pair, " ".join(names) or "cores", fix)
    s, g = view.subject, view.subject.group
    if unread(s):
        return None  # the cores compute what lies in their memory: they are busy with the model itself
    device_waits = g.gpu_utilization is not None and g.gpu_utilization <= IDLE
    said: list[str] = []
    if (
        g.cpu_utilization is not None
        and g.cpu_utilization >= BUSY
        and (device_waits or (g.host_gap_s and s.step and g.host_gap_s >= OWNS * s.step))
    ):
        said.append(
            f"the cores are busy for {percent(min(1.0, g.cpu_utilization))}"
            + (f" and the device for {percent(g.gpu_utilization)}" if g.gpu_utilization is not None else "")
        )
    if (
        g.cpu_cores is not None
        and g.cpu_cores < FEW_CORES + s.devices - 1
        and view.table.hardware.kind != "cpu"
        and (device_waits or (g.host_gap_s or 0) > 0 or (s.slower or 0) >= 1.8)
    ):
        said.append(f"{g.cpu_cores:,.0f} CPU cores serve the engine, its server and its tokenisers")
    if (
        view.table.hardware.kind == "cpu"
        and g.threads
        and g.cpu_cores
        and (g.threads > 1.5 * g.cpu_cores or g.threads <= 0.4 * g.cpu_cores)
    ):
        said.append(f"{g.threads:,.0f} threads run on {g.cpu_cores:,.0f} cores")
    if not said:
        return None
    gap = g.host_gap_s
    gain = without(gap, s.step) if gap and s.step and s.tpot else None
    return candidate(
        view,
        Cause.CPU_STARVED,
        Tier.MEASURED if len(said) > 1 or g.cpu_utilization else Tier.FAULT,
        tuple(said),
        fix,
        gain=gain,
        weight=0.97 if device_waits else min(0.97, (gap / s.step if gap and s.step else 0.5) + 0.01),
        confidence="high" if device_waits or (g.cpu_utilization or 0.0) >= BUSY else "medium",
    )


def stream_consumer(view: View) -> Answer:
    """Handing tokens to the user holds the loop back."""
    s, g = view.subject, view.subject.group
    fix = (
        "Hand tokens over outside the generation loop: a queue and a thread of its own for the"
        " consumer, several tokens an update, less work in each (no re-rendering of the whole"
        " text), or no streaming."
    )
    total = s.metric(view.goal) if view.goal in (Goal.E2E, Goal.TPOT) else s.e2e
    if g.stream_s:
        unit = s.step if s.step and g.stream_s <= 1.1 * s.step else max(total or 0, g.stream_s)
        if unit and g.stream_s >= OWNS * unit:
            return candidate(
                view,
                Cause.STREAM_CONSUMER,
                Tier.MEASURED,
                (
                    f"handing tokens over takes {seconds(g.stream_s * 1e9)},"
                    f" {percent(min(1, g.stream_s / unit))} of the time",
                ),
                fix,
                gain=without(g.stream_s, unit),
                weight=min(0.95, g.stream_s / unit),
            )
    for pair in view.pairs:
        if (
            "streaming" in pair.differs
            and pair.worse.group.streaming
            and pair.better.group.streaming is False
            and pair.goal is not Goal.TTFT
        ):
            return tried(view, Cause.STREAM_CONSUMER, pair, "streaming", fix, "Text appears a little later.")
        if (
            any("stream" in n for n in pair.differs)
            and pair.goal is not Goal.TTFT
            and "streaming" not in pair.differs
        ):
            return tried(
                view, Cause.STREAM_CONSUMER, pair, "the streamer", fix, "Text appears a little later."
            )
    return None
