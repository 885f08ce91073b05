"""Steps are stretched by other requests' prefill."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes.token_budget import LETS_PASS
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.neighbours import NEIGHBOURS, at_once, prefill_load, slow_end, spikiness
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
SMALLER = 0.25  # of the budget: two halvings, a usual next try
LEAST_BUDGET = 128  # tokens: below, a chunk costs a whole reading of the weights on most devices
ELSEWHERE = 0.6  # of the cost is won where prompts are read by other devices: KV has to come over
SPIKES = 3.0  # ITL p99 over its middle: steps of one kind vary by less
SLOWER = 1.3  # times a well set-up engine's step, or the middle gap: less is within what engines differ by
A_CHUNK = (0.4, 2.5)  # the slow end over a chunk's expected time: a device's speed is known that well
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
    found = _tried(view)
    if found is not None or view.goal is Goal.TTFT:
        return found
    if view.subject.group.prefilling_concurrently:
        return _read_meanwhile(view.subject, view.subject.group.prefilling_concurrently)
    return _stretched(view, view.subject) or _chunk_long(max(view.settings, key=spikiness))


def _tried(view: View) -> Told | None:
    for pair in view.pairs:
        if "prefilling_concurrently" in pair.differs and pair.goal is not Goal.TTFT:
            others = [s.group.prefilling_concurrently or 0 for s in (pair.worse, pair.better)]
            if others[0] > others[1]:
                return tried(view, pair, "prefilling_concurrently")
            break
    larger = view.contrast(*BUDGETS, *LETS_PASS)
    if larger is not None and larger.goal is Goal.TPOT and not larger.worse.alone:
        if set(LETS_PASS) & set(larger.differs) or (larger.worse.budget or 0) > (larger.better.budget or 0):
            return tried(view, larger, "larger chunks of prompts")
    return None


def _read_meanwhile(s: Setting, tokens: float) -> Told | None:
    """Others' prompts are known to be read while these decode."""
    said = f"{tokens:,.0f} prompt tokens of other requests were read while these decoded"
    usual = s.step_expected or s.group.itl_p50_s
    slower = s.tpot / usual if s.tpot and usual else None
    if slower is None or slower >= SLOWER:
        return Told(
            Tier.FAULT,
            (said, f"a token takes {times(slower)} of what it should" if slower else None),
            gain=modelled(slower) if slower else None,
            weight=1 - 1 / slower if slower else 0.4,
        )
    gaps = slow_end(s)  # the usual token is on time
    if gaps is None or spikiness(s) < SPIKES or s.group.stall_period_s or s.group.preemptions:
        return None
    return Told(Tier.FAULT, (said, _gaps(*gaps)), weight=0.2)


def _stretched(view: View, s: Setting) -> Told | None:
    """A token takes longer than it should, and others' prompts fill much of the device's time."""
    read = prefill_load(view, s)
    if read is None or read[0] < READING or not s.tpot or s.slower is None or s.slower < STRETCHED:
        return None
    return Told(
        Tier.FAULT,
        (
            f"a token takes {times(s.slower)} of what it should, with {at_once(s):,.0f} requests at once",
            f"reading their prompts ({seconds(read[1] * 1e9)} each) fills {percent(min(1.0, read[0]))} of the"
            " device's time",
        ),
        gain=modelled(s.slower),
        weight=1 - 1 / s.slower,
        confidence="high",
    )


def _chunk_long(s: Setting) -> Told | None:
    """The slow end of ITL is about as long as a chunk of a prompt takes."""
    g, gaps, others = s.group, slow_end(s), at_once(s)
    if gaps is None or spikiness(s) < SPIKES or others < NEIGHBOURS or g.stall_period_s or g.preemptions:
        return None
    tail, middle = gaps
    prompts = (g.prompt_tokens or s.budget or 0) * max(1.0, others)
    chunk = min(s.budget or g.prompt_tokens or 0, prompts) or None
    reads = s.prefill_with(chunk) if chunk else s.prefill
    fits = reads is not None and A_CHUNK[0] <= tail / (reads + middle) <= A_CHUNK[1]
    return Told(
        Tier.FAULT if fits or not reads else Tier.SUSPICION,
        (
            f"{_gaps(tail, middle)}, with {others:,.0f} requests at once",
            f"a chunk of {chunk:,.0f} prompt tokens takes about {seconds(reads * 1e9)}: the size"
            " of these gaps"
            if fits and chunk and reads
            else None,
        ),
        weight=max(0.2, 1 - middle / max(s.tpot or middle, middle)),
        confidence="medium" if fits else "low",
    )


def _gaps(tail: float, middle: float) -> str:
    return f"the slow end of ITL is {seconds(tail * 1e9)}, its middle {seconds(middle * 1e9)}"


RULE = Rule(Cause.PREFILL_INTERFERENCE, WORDS, in_steps, in_table)
