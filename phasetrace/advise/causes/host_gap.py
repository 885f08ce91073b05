"""The device waits for the scheduler, the detokeniser or Python between steps."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal, Part, Phase
from phasetrace.semconv import Cause

REST = (
    "fewer outputs a second (stream_interval), incremental detokenisation over a window of fixed length,"
    " fewer Python objects a step, more CPU for the engine core, a newer engine version."
)
WORDS = Words(
    fix="Take host work out from between steps: asynchronous (overlapped, multi-step) scheduling, " + REST,
    tradeoff="Steps scheduled ahead compute a token more for requests that end; streams come in lumps.",
    commands={
        "vllm": ("--async-scheduling", "--stream-interval 8"),
        "sglang": ("# leave out --disable-overlap-schedule",),
    },
)
MEASURED = 0.8  # of a gap that matters: gap and step of a table are each up to 10 % off
GROWS = 1.4  # times the gap elsewhere: what is more than measuring error makes of it
SLOW = 1.8  # times a well set-up engine's step: engines and their versions differ by less
OVERLAPPED = 0.8  # of the gap: what depends on the step's tokens cannot be done ahead
IDLE = 0.6  # of the device's time is used: it waits for somebody
MANY = 8  # sequences: with so many, there is always work for the device
OVERLAPS = (
    "async_scheduling",
    "num_scheduler_steps",
    "disable_overlap_schedule",
    "enable_overlap_schedule",
    "multi_step",
    "disable_async_output_proc",
    "skip_tokenizer_init",  # no detokenising
)


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """The scheduler and the output processing of a server take their time between its steps."""
    decode = evidence.phase_ns(Phase.DECODE)
    if evidence.engine == "transformers" or evidence.goal is Goal.TTFT or not decode:
        return None
    host = (Part.SCHEDULE, Part.OUTPUT, Part.HOST_GAP)
    spent = {part: evidence.part_ns(part, Phase.DECODE) for part in host}
    other = evidence.part_ns(Part.OTHER, Phase.DECODE) if spent[Part.SCHEDULE] else 0  # the loop around them
    gap = float(sum(spent.values()) + other)
    if gap < WORTH * decode:
        return None
    held = evidence.holding_back(gap)
    if held is None and evidence.knobs.get("async_scheduling"):
        return Measure("device times of the steps: scheduling may overlap with the device's work")
    gap = gap if held is None else held
    if gap < WORTH * decode:
        return None
    overlapped = bool(evidence.knobs.get("async_scheduling"))
    return Seen(
        gap,
        evidence=(
            f"{percent(gap / decode)} of decode passes outside the forward pass:"
            f" {seconds(spent[Part.SCHEDULE])} scheduling, {seconds(spent[Part.OUTPUT])} processing outputs,"
            f" {seconds(spent[Part.HOST_GAP] + other)} between",
            f"asynchronous scheduling is {'on' if overlapped else 'off'}",
        ),
        confidence="high" if held is not None else "medium",
        fix=f"Take host work out from between steps: {REST}" if overlapped else "",
        commands={"vllm": ("--stream-interval 8",)} if overlapped else {},
        prediction=predict(evidence, Saving(decode_ns=gap * OVERLAPPED, least=0.4, most=1.2)),
    )


def in_table(view: View) -> Told | None:
    """A gap was measured, the user tried without it, or the device is idle while there is work."""
    if view.goal is Goal.TTFT:
        return None
    pair = view.contrast(*OVERLAPS)
    if pair is not None:
        return tried(view, pair, "host work between the steps")
    timed = [s for s in view.settings if s.group.host_gap_s]
    return _measured(timed) if timed else _after_the_engine(view.subject) or _idle(view, view.subject)


def _measured(timed: list[Setting]) -> Told | None:
    s = max(timed, key=lambda x: x.group.host_gap_s or 0)
    least = min(timed, key=lambda x: x.group.host_gap_s or 0)
    gap, shortest = s.group.host_gap_s or 0.0, least.group.host_gap_s or 0.0
    step = s.step or (gap + s.step_expected if s.step_expected else None)
    part = min(0.95, gap / step) if step else 0.25
    if part < WORTH * MEASURED:
        return None
    return Told(
        Tier.MEASURED,
        (
            f"the device waits {seconds(gap * 1e9)} for the host in each step"
            + (f", {percent(part)} of it" if step else ""),
            f"the gap grows from {seconds(shortest * 1e9)} ({_size(least)}) to that ({_size(s)})"
            if gap >= GROWS * shortest
            else None,
        ),
        gain=without(gap, step) if s.tpot else None,
        weight=max(part, 0.16),
        seconds=gap * (s.group.output_tokens or 1),
        setting=s,
        confidence="high" if step and s.group.cpu_utilization is not None else "medium",
    )


def _after_the_engine(s: Setting) -> Told | None:
    spent = s.group.post_engine_s or 0.0
    unit = s.step if s.step and spent <= s.step else s.e2e
    if not spent or not unit or spent < WORTH * unit:
        return None
    return Told(
        Tier.MEASURED,
        (f"after the engine, the host takes {seconds(spent * 1e9)}",),
        gain=without(spent, unit),
        weight=min(0.9, spent / unit),
    )


def _idle(view: View, s: Setting) -> Told | None:
    used, sequences = s.group.gpu_utilization, s.group.running or s.group.batch or 0
    if used is None or used > IDLE:
        return None
    said = f"the device is used for {percent(used)} of the time"
    if s.slower is None and sequences >= MANY and view.goal is not Goal.E2E:
        return Told(
            Tier.SUSPICION,
            (f"{said}, with {sequences:,.0f} sequences to work on",),
            weight=0.5,
            confidence="low",
        )
    if s.slower is None or s.slower < SLOW or (s.width or 0) <= 1:
        return None
    return Told(
        Tier.FAULT,
        (f"{said}, and a step takes {times(s.slower)} of what it should",),
        gain=modelled(min(s.slower, 1 / max(0.05, used)), 0.5),
        weight=1 - used,
        confidence="medium",
    )


def _size(s: Setting) -> str:
    if s.group.output_tokens:
        return f"{s.group.output_tokens:,.0f} output tokens"
    return f"{s.width:,.0f} sequences" if s.width else s.name


RULE = Rule(Cause.HOST_GAP, WORDS, in_steps, in_table)
