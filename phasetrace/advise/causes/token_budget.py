"""The per-step token budget, or one long prompt at its head, holds the others back."""

from __future__ import annotations

import math

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict_between
from phasetrace.advise.knobs import BUDGETS
from phasetrace.advise.queueing import Queue
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.queue import Waiting, at_cap, memory_full, waits
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Gain, Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.waiting import held_up, scheduler_ns
from phasetrace.advise.words import percent, seconds
from phasetrace.model import Goal, Phase, Wait
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Raise the token budget of a step (max_num_batched_tokens), or let short prompts pass long ones"
        " (chunked prefill, a limit on long partial prefills)."
    ),
    tradeoff=(
        "A larger budget helps TTFT and throughput, and makes each gap between tokens longer (ITL); long"
        " prompts that are passed take longer."
    ),
    commands={
        "vllm": (
            "--max-num-batched-tokens 8192",
            "--long-prefill-token-threshold 1024  # a long prompt leaves room for short ones",
        ),
        "sglang": ("--chunked-prefill-size 8192 --max-prefill-tokens 16384",),
        "tgi": ("--max-batch-prefill-tokens 8192",),
        "tensorrt-llm": ("trtllm-serve --max_num_tokens 8192",),
        "llama.cpp": ("llama-server --ubatch-size 2048 --batch-size 4096",),
    },
)
READ_BOUND = 0.5  # of a full step is fixed: then its budget is too small for the device, whoever waits
LARGER = 4.0  # times the budget: two doublings, a usual next try
PASSING = 0.7  # of their wait for a long prompt that short ones are spared: their own reading stays
LETS_PASS = (
    "enable_chunked_prefill",
    "chunked_prefill",
    "max_num_partial_prefills",
    "long_prefill_token_threshold",
)
MUCH_LONGER = 4.0  # times the others: prompts that much longer hold them back
LONGER = 2.0  # times a prompt: a budget that takes in two is not what they wait for


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """By the scheduler, most of the waiting is for the tokens of a step, and the budget is no tiny one."""
    queue, held = scheduler_ns(evidence), held_up(evidence, Wait.BUDGET)
    if not isinstance(held, Queue):
        return held
    budget, costs = evidence.knob(*BUDGETS), evidence.prompt_costs
    if budget is None or costs is None:
        return Measure("the token budget of a step, and what a prompt token costs")
    fixed, each = costs
    if fixed >= READ_BOUND * (fixed + each * budget):
        return None  # each step reads the weights for a few tokens: `small-prefill-chunk` says so
    waited = queue * held.share(Wait.BUDGET)
    lengths = sorted(r.new_prompt_tokens or 0 for r in evidence.requests)
    middle = lengths[len(lengths) // 2]
    short = [r for r in evidence.requests if (r.new_prompt_tokens or 0) <= middle]
    behind = sum(r.phase_ns(Phase.QUEUE) for r in short) if lengths[-1] >= MUCH_LONGER * max(middle, 1) else 0
    passing = PASSING * min(waited, behind)
    larger = waited * (1 - (fixed / (LARGER * budget) + each) / (fixed / budget + each))
    pass_by = passing >= larger
    return Seen(
        waited,
        evidence=(
            f"{percent(queue / evidence.whole_ns)} of {evidence.whole} is spent in the queue:"
            f" {percent(held.share(Wait.BUDGET))} of that while a step's {budget:,.0f} tokens were used up",
            f"prompts have {middle:,} new tokens (median), the longest {lengths[-1]:,}",
            f"a step of {budget:,.0f} tokens takes {seconds(fixed + each * budget)},"
            f" {percent(fixed / (fixed + each * budget))} of that however few they are",
        ),
        fix="Let short prompts pass long ones: limit how much of a long prompt a step reads"
        " (long_prefill_token_threshold), or raise the token budget (max_num_batched_tokens)."
        if pass_by
        else f"Raise the token budget of a step (max_num_batched_tokens) from {budget:,.0f}.",
        commands={
            "vllm": (
                *((f"--long-prefill-token-threshold {max(1, int(budget) // 2)}",) if pass_by else ()),
                f"--max-num-batched-tokens {int(budget * LARGER)}",
            )
        },
        prediction=predict_between(
            evidence, [Saving(first_ns=max(passing, larger) * by) for by in (1.0, 0.4, 1.2)]
        ),
    )


def in_table(view: View) -> Told | None:
    """The user tried another budget, or prompts wait behind long ones while slots and memory are free."""
    pair = view.contrast(*BUDGETS)
    if pair is not None and (pair.worse.budget or 0) < (pair.better.budget or 0) and not pair.worse.alone:
        if view.goal in (Goal.TTFT, Goal.THROUGHPUT, Goal.E2E):
            sure = None if pair.worse.budget is not None else "medium"  # an unstated one is some default
            return tried(view, pair, "a smaller token budget", confidence=sure)
    pair = view.contrast(*LETS_PASS)
    if pair is not None and pair.goal is Goal.TTFT and not pair.worse.alone:
        return tried(view, pair, "prompts read in one piece")
    ahead = view.contrast("prefilling_concurrently")
    if ahead is not None and ahead.goal is Goal.TTFT and (ahead.worse.group.prefilling_concurrently or 0) > 0:
        return tried(view, ahead, "prefilling_concurrently")
    if view.goal is Goal.TPOT:
        return None
    behind = _behind_long_prompts(view)
    if behind is not None:
        short, long, queue = behind
        return Told(
            Tier.FAULT,
            (
                queue.said,
                f"prompts of {long.group.prompt_tokens:,.0f} tokens are read in front of"
                f" those of {short.group.prompt_tokens:,.0f}",
            ),
            weight=queue.share,
            seconds=queue.seconds,
            setting=short,
        )
    s, g = view.subject, view.subject.group
    waiting = None if s.alone or at_cap(s) or memory_full(s) else waits(view, s)
    looked_at = g.kv_cache_usage is not None or g.running is not None
    if waiting is None or not looked_at or not s.budget or not g.prompt_tokens:
        return None
    if s.budget >= LONGER * g.prompt_tokens:
        return None
    return Told(
        Tier.FAULT,
        (
            waiting.said,
            f"a step computes {s.budget:,.0f} tokens, a prompt has {g.prompt_tokens:,.0f}",
            "neither slots nor the KV cache are used up",
        ),
        weight=waiting.share,
        seconds=waiting.seconds,
        gain=_larger_budget(s),
    )


def _behind_long_prompts(view: View) -> tuple[Setting, Setting, Waiting] | None:
    """Short prompts that wait, beside others many times as long, while slots and memory are free."""
    for short in view.settings:
        queue = waits(view, short)
        if queue is None or short.alone or at_cap(short) or memory_full(short):
            continue
        for long in view.settings:
            if (long.group.prompt_tokens or 0) >= MUCH_LONGER * (short.group.prompt_tokens or math.inf):
                return short, long, queue
    return None


def _larger_budget(s: Setting) -> Gain | None:
    """A wait shrinks as the work of each request does: by what full chunks save of its prefill."""
    if s.new_tokens is None or s.budget is None:
        return None
    now, then = s.prefill_with(s.new_tokens, s.budget), s.prefill_with(s.new_tokens)
    return modelled(now / then) if now and then and now >= 1.2 * then else None


RULE = Rule(Cause.TOKEN_BUDGET, WORDS, in_steps, in_table)
