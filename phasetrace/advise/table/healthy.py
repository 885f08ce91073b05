"""The answers that are no fault of a table: all is well, or the numbers do not separate the causes."""

from __future__ import annotations

from phasetrace.advise.knobs import to_record
from phasetrace.advise.ranking import WORTH, Candidate, Tier
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.step import NEAR
from phasetrace.advise.table.told import SIXTEEN_BITS
from phasetrace.advise.table.view import View
from phasetrace.advise.words import seconds, times
from phasetrace.model import Finding, Goal
from phasetrace.semconv import Cause, CausePhase


def healthy(view: View, found: list[Candidate]) -> Finding | None:
    """The SLO is met; or no goal was stated, nothing is wrong, and the times are those of the device."""
    if view.slo:
        measured = {metric: _slow_end(view.subject, metric) for metric in view.slo}
        if all(v is not None and v <= view.slo[m] for m, v in measured.items()):
            said = [
                f"{m} is {seconds((v or 0) * 1e9)}, the SLO {view.slo[m]:g} s" for m, v in measured.items()
            ]
            return _healthy(said, "high", "Nothing to change for this goal: it is met.")
        return None
    wrong = [c for c in found if c.tier < Tier.BOUND and c.weight >= WORTH]
    if wrong or view.goal_stated:
        return None
    said = at_bound(view.subject)
    if not said:
        return None
    return _healthy(
        said,
        "medium",
        "Nothing to change: no change is needed. To push one metric further, state it with --goal.",
    )


def at_bound(s: Setting) -> list[str]:
    """What shows that the device does what it can; empty where something is slower or unknown."""
    said = []
    if s.slower is not None and s.step is not None:
        if s.slower > NEAR:
            return []
        said.append(
            f"a decode step takes {seconds(s.step * 1e9)}, {times(s.slower)} of what a well set-up"
            " engine takes on this device"
        )
    usual = s.prefill_with(s.new_tokens * s.together) if s.new_tokens else None
    if usual and s.prefill:
        if s.prefill - NEAR * usual > WORTH * (s.e2e or s.prefill):
            return []
        said.append(
            f"prefill takes {seconds(s.prefill * 1e9)}, {times(s.prefill / usual)} of what it takes"
            " at best usually"
        )
    waits, whole = (s.group.queue_s or 0) + (s.before_queue or 0), s.e2e or s.ttft
    if whole and waits > WORTH * whole:
        return []
    return [*said, SIXTEEN_BITS] if said and s.assumed else said


def _slow_end(s: Setting, metric: str) -> float | None:
    g = s.group
    tails = {"ttft": g.ttft_p95_s, "e2e": g.e2e_p95_s, "tpot": None}
    tail = tails.get(metric)
    return tail if tail is not None else s.metric(Goal(metric))


def _healthy(said: list[str], confidence: str, recommendation: str) -> Finding:
    return Finding(
        cause=Cause.HEALTHY,
        phase=CausePhase.NONE,
        ns=0,
        share=0.0,
        confidence=confidence,
        evidence=tuple(said),
        recommendation=recommendation,
    )


def unknown(view: View, why: str | None = None) -> Finding:
    """What to measure next: what the goal's metric is made of, as far as it is missing."""
    s = view.subject
    needed = missing(view, s)
    record = to_record(view.engine)
    if why is not None:
        needed = [
            "the phases of both groups in the engine (server-side queue, prefill, decode)",
            "the client's and the proxies' own waits, connection limits and buffers",
            "dtype, version and settings on both sides",
        ]
    return Finding(
        cause=Cause.UNKNOWN,
        phase=CausePhase.NONE,
        ns=0,
        share=0.0,
        confidence="low",
        evidence=(why or f"{', '.join(needed[:2])} {'are' if len(needed) > 1 else 'is'} missing",),
        recommendation=(
            f"Measure next, at the client and in the engine: {'; '.join(needed[:4])}."
            f"{' A trace records them all.' if record else ''}"
        ),
        commands=record,
    )


def missing(view: View, s: Setting) -> list[str]:
    """Fields that would separate the causes of the goal's metric, in the order of what they tell."""
    g = s.group
    first: list[tuple[str, object, str]] = [
        ("queue_s", g.queue_s, "the time in the queue"),
        ("prefill_s", g.prefill_s, "the time of prefill"),
        ("prompt_tokens", g.prompt_tokens, "the prompt's length"),
        ("max_num_seqs", s.cap if g.waiting else 1, "the cap on sequences"),
        ("cached_tokens", g.cached_tokens or g.prefix_cache_hit_rate, "what the prefix cache gave"),
    ]
    decode: list[tuple[str, object, str]] = [
        ("tpot_s", s.tpot, "the time of a token"),
        ("output_tokens", g.output_tokens, "the output's length"),
        ("batch", s.width, "the sequences that share a step"),
        ("model", s.shape, "the model's size and dtype"),
        ("hardware", s.ceiling, "the device's bandwidth"),
        ("host_gap_s", g.host_gap_s, "the host's time between steps"),
    ]
    order: list[tuple[str, object, str]] = {
        Goal.TTFT: first,
        Goal.TPOT: decode,
        Goal.E2E: [*first[:2], *decode],
        Goal.THROUGHPUT: [*decode, *first],
    }[view.goal]
    names = [f"{said} ({name})" for name, value, said in order if value is None]
    return names or ["the time of each step and what ran in it", "the same load at another batch size"]
