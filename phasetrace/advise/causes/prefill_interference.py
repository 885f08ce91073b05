"""Steps are stretched by other requests' prefill."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes.token_budget import LETS_PASS
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.model import Goal, Part, Phase, StallCause
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Keep others' prefill out of the steps that decode: a smaller prefill chunk (token budget of a"
        " step) and fewer prefills at once shorten the gaps; to win the time itself, let prefill run on"
        " other devices (disaggregate), or reuse what prompts share."
    ),
    tradeoff="A smaller budget makes TTFT of long prompts and throughput worse.",
    commands={
        "vllm": ("--max-num-batched-tokens 512  # smaller chunks between decode steps",),
        "sglang": (
            "--chunked-prefill-size 512",
            "--disaggregation-mode prefill  # and decode on other devices",
        ),
        "tgi": ("--max-batch-prefill-tokens 2048 --waiting-served-ratio 1.2",),
        "llama.cpp": ("llama-server --ubatch-size 256",),
    },
)
SHARE = 0.1  # of decode: with less, taking all of it away wins less than what matters
NEIGHBOURS = 1.5  # requests at once: with fewer, no other's prompt can stretch a step
SMALLER = 0.25  # of the budget: two halvings, a usual next try
LEAST_BUDGET = 128  # tokens: below, a chunk costs a whole reading of the weights on most devices
ELSEWHERE = 0.6  # of the cost is won where prompts are read by other devices: KV has to come over
SPIKES = 3.0  # ITL p99 over its middle: steps of one kind vary by less
READING = 0.3  # of the device's time: less cannot stretch a step by half
STRETCHED = 1.5  # times a well set-up engine's step of that batch


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Others' prompts take a part of the steps that decode, by the model of a step."""
    decode = evidence.phase_ns(Phase.DECODE)
    cost = evidence.part_ns(Part.OTHERS_PREFILL, Phase.DECODE)
    if evidence.goal is Goal.TTFT or not decode:
        return None
    if not evidence.stepped and evidence.load is not None and evidence.load.concurrency >= NEIGHBOURS:
        return Measure("the engine's steps, and whose prompts they read")
    if cost < SHARE * decode:
        return None
    b = evidence.breakdown
    by_prefill = [s for s in b.stalls if s.cause is StallCause.OTHERS_PREFILL]
    costly: dict[str, int] = {}
    for paid in b.interference:
        costly[paid.by] = costly.get(paid.by, 0) + paid.ns
    worst = sorted(costly, key=lambda name: -costly[name])[: max(1, len(costly) // 10)]
    lengths = {r.request.id: r.new_prompt_tokens for r in evidence.requests}
    prompts = [n for name in worst if (n := lengths.get(name))]
    itl = b.metrics.get("itl_ns")
    budget = evidence.knob(*BUDGETS)
    smaller = max(LEAST_BUDGET, int((budget or 2048) * SMALLER))
    return Seen(
        cost,
        evidence=(
            f"{percent(cost / decode)} of decode goes into others' prompts in its steps: {seconds(cost)}",
            (
                f"{count(len(worst), 'request')} of {len(costly):,} cost"
                f" {percent(sum(costly[n] for n in worst) / sum(costly.values()))} of that"
                + (f", with {statistics.median(prompts):,.0f} prompt tokens each" if prompts else "")
            )
            if costly
            else None,
            (
                f"p99 of ITL is {times(itl.p99 / itl.p50)} its middle"
                f" ({seconds(itl.p99)} and {seconds(itl.p50)})"
            )
            if itl is not None and itl.p50
            else None,
            f"{count(len(by_prefill), 'stall')} fell on such a step" if by_prefill else None,
        ),
        commands={
            "vllm": (
                f"--max-num-batched-tokens {smaller}  # or --long-prefill-token-threshold {smaller}",
                "--kv-transfer-config ...  # prefill on other instances",
            )
        },
        # Prompts that are read elsewhere cost decode nothing but their KV's way; with smaller chunks gaps
        # are shorter and more.
        prediction=predict(evidence, Saving(decode_ns=cost * ELSEWHERE, least=0.3, most=1 / ELSEWHERE)),
    )


def in_table(view: View) -> Told | None:
    """The user tried without, others' prompts fill the device, or the slow gaps are as long as a chunk."""
    pair = next(
        (p for p in view.pairs if "prefilling_concurrently" in p.differs and p.goal is not Goal.TTFT), None
    )
    if pair is not None and (pair.worse.group.prefilling_concurrently or 0) > (
        pair.better.group.prefilling_concurrently or 0
    ):
        return tried(view, pair, "prefilling_concurrently")
    larger = view.contrast(*BUDGETS, *LETS_PASS)
    if larger is not None and larger.goal is Goal.TPOT and not larger.worse.alone:
        if set(LETS_PASS) & set(larger.differs) or (larger.worse.budget or 0) > (larger.better.budget or 0):
            return tried(view, larger, "larger chunks of prompts")
    s, g = view.subject, view.subject.group
    if view.goal is Goal.TTFT:
        return None
    if g.prefilling_concurrently:
        usual = s.step_expected or g.itl_p50_s
        slower = s.tpot / usual if s.tpot and usual else None
        if slower is not None and slower < 1.3:
            return _gaps(s)
        return Told(
            Tier.FAULT,
            (
                f"{g.prefilling_concurrently:,.0f} prompt tokens of other requests were read while these"
                " decoded",
                f"a token takes {times(slower)} of what it should" if slower else None,
            ),
            gain=modelled(slower) if slower else None,
            weight=1 - 1 / slower if slower else 0.4,
        )
    read = _prefill_load(view, s)
    if read is not None and read[0] >= READING and s.tpot and s.slower is not None and s.slower >= STRETCHED:
        return Told(
            Tier.FAULT,
            (
                f"a token takes {times(s.slower)} of what it should, with {_others(s):,.0f} requests at once",
                f"reading their prompts ({seconds(read[1] * 1e9)} each) fills"
                f" {percent(min(1.0, read[0]))} of the device's time",
            ),
            gain=modelled(s.slower),
            weight=1 - 1 / s.slower,
            confidence="high",
        )
    s = max(view.settings, key=_spikiness)
    g = s.group
    middle, tail = g.itl_p50_s or g.tpot_s, g.itl_p99_s or g.itl_p95_s or g.itl_max_s
    others = _others(s)
    if (
        not middle
        or not tail
        or tail < SPIKES * middle
        or others < NEIGHBOURS
        or g.stall_period_s
        or g.preemptions
    ):
        return None
    chunk = (
        min(s.budget or g.prompt_tokens or 0, (g.prompt_tokens or s.budget or 0) * max(1.0, others)) or None
    )
    reads = s.prefill_with(chunk) if chunk else s.prefill
    said = [
        f"the slow end of ITL is {seconds(tail * 1e9)}, its middle {seconds(middle * 1e9)}, with"
        f" {others:,.0f} requests at once"
    ]
    fits = reads is not None and 0.4 <= tail / (reads + middle) <= 2.5
    if fits and chunk and reads:
        said.append(
            f"a chunk of {chunk:,.0f} prompt tokens takes about {seconds(reads * 1e9)}: the size of"
            " these gaps"
        )
    mean = s.tpot or middle
    return Told(
        Tier.FAULT if fits or not reads else Tier.SUSPICION,
        tuple(said),
        weight=max(0.2, 1 - middle / max(mean, middle)),
        confidence="medium" if fits else "low",
    )


def _gaps(s: Setting) -> Told | None:
    """The usual token is on time, and the slow end waits for prompts that are known to be read meanwhile."""
    g = s.group
    if _spikiness(s) < SPIKES or g.stall_period_s or g.preemptions:
        return None
    middle, tail = g.itl_p50_s or g.tpot_s or 0.0, g.itl_p99_s or g.itl_p95_s or g.itl_max_s or 0.0
    return Told(
        Tier.FAULT,
        (
            f"{g.prefilling_concurrently:,.0f} prompt tokens of other requests were read while these decoded",
            f"the slow end of ITL is {seconds(tail * 1e9)}, its middle {seconds(middle * 1e9)}",
        ),
        weight=0.2,
    )


def _spikiness(s: Setting) -> float:
    """The slow end of ITL over its middle."""
    g = s.group
    middle, tail = g.itl_p50_s or g.tpot_s, g.itl_p99_s or g.itl_p95_s or g.itl_max_s
    return tail / middle if middle and tail else 0.0


def _others(s: Setting) -> float:
    """Requests that are served at once."""
    g = s.group
    return max((v for v in (g.running, g.batch, g.concurrency, g.request_rate) if v is not None), default=0.0)


def _prefill_load(view: View, s: Setting) -> tuple[float, float] | None:
    """The share of the device's time that prompts take while these decode, and the prefill of one alone.

    Requests begin at the rate at which they end: those running over the time that one runs (Little's law).
    """
    g = s.group
    if g.running is None and g.concurrency is None and g.request_rate is None:
        return None  # a static batch: nobody else comes while it decodes
    running = g.running or g.batch or s.width
    alone = next((x.prefill for x in view.settings if x.alone and x.prefill), None)
    each = alone or (s.prefill_with(s.new_tokens) if s.new_tokens else None)
    rate = g.request_throughput
    if rate is None and running and s.decode:
        rate = running / (s.decode + (s.prefill or 0.0))
    if not rate or not each or not running or running < NEIGHBOURS:
        return None
    return rate * each, each


RULE = Rule(Cause.PREFILL_INTERFERENCE, WORDS, in_steps, in_table)
