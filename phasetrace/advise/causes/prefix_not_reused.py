"""A shared prefix is computed again and again."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes import kv_full
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import fewer_read, predict
from phasetrace.advise.prefixes import Front, behind_front, grows
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.contrast import MATTERS
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Goal, Phase, RequestBreakdown
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Let the shared prefix be reused: switch prefix caching on, keep what changes out of the"
        " front of the prompt, send requests of one prefix to one replica, and check that the model"
        " supports the cache."
    ),
    tradeoff="The cache takes KV blocks, which are given up when requests need them.",
    commands={
        "vllm": ("--enable-prefix-caching",),
        "sglang": ("# leave out --disable-radix-cache",),
        "tgi": ("PREFIX_CACHING=1",),
        "tensorrt-llm": ("kv_cache_config: {enable_block_reuse: true}",),
        "llama.cpp": ('"cache_prompt": true  # in the request', "llama-server --cache-reuse 256"),
        "transformers": (
            "with torch.no_grad():  # once\n"
            "    prefix = model(**prefix_inputs, use_cache=True).past_key_values\n"
            "# every request, with its whole prompt in inputs:\n"
            "model.generate(**inputs, past_key_values=copy.deepcopy(prefix))",
        ),
    },
)
OWNS = 0.3  # of the goal's time, prefill: below, even a prefill halved wins less than the 15 % that matter
REPEATED_TOKENS = 64  # a request: two chunks; below, restoring a cache costs as much as computing it
KEPT = (
    "cache = DynamicCache()  # one a conversation\n"
    "# every turn; inputs begin with the very ids that the last one returned:\n"
    "ids = model.generate(**inputs, past_key_values=cache)"
)
SHARED = 0.3  # of the prompt tokens; chat templates alone repeat less
HIT = 0.5  # of what could be reused is reused: below, the cache does not do its work
LIKE_NEW = 0.7  # of the time of a new prompt: a prompt that is in the cache takes far less


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """By hashes of chunks, prompts share text that is computed again: at the front, or behind a change."""
    hashed = [r for r in evidence.requests if r.repeated_prompt_tokens is not None and r.new_prompt_tokens]
    prefill = evidence.phase_ns(Phase.PREFILL)
    if not hashed:
        if len(evidence.requests) > 1 and evidence.share(prefill) >= OWNS:
            return Measure("hashes of the prompts' chunks, to see whether they begin alike")
        return None
    new = sum(r.new_prompt_tokens or 0 for r in hashed)
    again = [r.repeated_prompt_tokens for r in hashed if r.repeated_prompt_tokens]
    repeated, front = sum(again), behind_front(r.request for r in hashed)
    if front is not None and front.behind > repeated:
        if front.behind < SHARED * new or front.each < REPEATED_TOKENS:
            return None
        return _front_differs(evidence, front, new)
    if repeated < SHARED * new or statistics.median(again) < REPEATED_TOKENS:
        return None
    return _computed_again(evidence, hashed, repeated, new)


def _front_differs(evidence: Evidence, front: Front, new: int) -> Seen:
    fewer = min(front.requests * _whole_blocks(evidence, front.each), new)
    spared = fewer_read(evidence, fewer, new, least=0.6, most=1.1)
    saved = spared.total_ns
    served, on = _served(evidence)
    at = f"after {front.differs_at:,.0f} tokens" if front.differs_at else "at their first tokens"
    return Seen(
        saved,
        evidence=(
            f"prompts start to differ {at}, and {front.each:,.0f} tokens (median) behind that are the same as"
            f" in an earlier prompt: a cache of prefixes ends at the first difference",
            f"{percent(min(1.0, front.behind / new))} of the prompt tokens that were computed could have been"
            f" reused: {count(front.behind, 'token')} in {count(front.requests, 'prompt')}",
        ),
        fix=f"Put what is the same in each request in front, and what changes behind it: prompts start to"
        f" differ {at} (a date, an id, a name?). Then let the prefix cache reuse the"
        f" {front.each:,.0f} tokens that follow.",
        commands={
            evidence.engine: (
                "prompt = SHARED_INSTRUCTIONS + what_changes_each_time",
                *(WORDS.commands.get(evidence.engine, ()) if served and not on else ()),
            )
        },
        tradeoff="Models may follow what stands first or last more closely: check answers.",
        prediction=predict(evidence, spared),
    )


def _computed_again(evidence: Evidence, hashed: list[RequestBreakdown], repeated: int, new: int) -> Seen:
    again = [r.repeated_prompt_tokens for r in hashed if r.repeated_prompt_tokens]
    spared = fewer_read(evidence, sum(_whole_blocks(evidence, n) for n in again), new, least=0.7, most=1.1)
    saved = spared.total_ns
    off = evidence.knobs.get("enable_prefix_caching") is False
    served, on = _served(evidence)
    turns = grows(hashed)
    return Seen(
        saved,
        evidence=(
            f"{percent(repeated / new)} of the prompt tokens that were computed had been computed before:"
            f" {count(repeated, 'token')} in {count(len(again), 'request')}",
            f"they begin with the same {statistics.median(again):,.0f} tokens (median) as an earlier request",
            "prefix caching is off" if off else None,
        ),
        fix=(
            "Switch prefix caching on: the shared prefix is then computed once."
            if off
            else "Let the shared prefix stay in the cache: more memory for it, requests of one prefix to"
            " one replica; check that the model supports prefix caching."
        )
        if served
        else "Keep the KV cache of the conversation, and compute only what a turn adds."
        if turns
        else "Compute the shared beginning once, and start every request from its KV cache.",
        commands={"transformers": (KEPT,)} if turns else kv_full.WORDS.commands if served and on else {},
        tradeoff=""
        if served
        else "The cache stays in memory between turns; a history that is cut or edited needs a new one."
        if turns
        else "The cache of the prefix stays in memory, and is copied for each request.",
        prediction=predict(evidence, spared),
    )


def _served(evidence: Evidence) -> tuple[bool, bool]:
    """Whether a server could keep prefixes, and whether it is set to do so."""
    return evidence.engine != "transformers", evidence.knobs.get("enable_prefix_caching") is True


def _whole_blocks(evidence: Evidence, tokens: float) -> float:
    """What a cache of KV blocks gives back of so many tokens: it keeps no part of a block."""
    size = evidence.knob("block_size") or 1
    return tokens // size * size


def in_table(view: View) -> Told | None:
    """The user tried without, or prompts share a prefix, and hits or times say that all of it is read."""
    if view.goal is Goal.TPOT:
        return None
    pair = view.contrast("enable_prefix_caching", "prefix_caching", "disable_radix_cache", "cache_prompt")
    if pair is not None and pair.ratio >= MATTERS and _off(pair.worse):
        return tried(view, pair, "the prefix cache off")
    pair = view.contrast("prefix_cache_hit_rate")
    if pair is not None and _hits(pair.worse) < _hits(pair.better):
        return tried(view, pair, "a lower prefix_cache_hit_rate")
    for s in sorted(view.settings, key=lambda x: -(x.group.shared_prefix_tokens or 0)):
        shared, prompt = s.group.shared_prefix_tokens or 0, s.group.prompt_tokens
        if prompt and shared >= SHARED * prompt and (why := _read_again(view, s, shared, prompt)) is not None:
            return _shared(view, s, shared, prompt, why)
    return None


def _shared(view: View, s: Setting, shared: float, prompt: float, why: str) -> Told:
    time = s.prefill or s.ttft
    whole = s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
    part = time / max(whole, time) if time and whole else 1.0
    saved = part * (shared / prompt - _hits(s))
    if time is None and view.goal is not Goal.TTFT:
        saved *= 0.5  # decode holds the rest, of unknown length
    return Told(
        Tier.FAULT,
        (f"{shared:,.0f} of {prompt:,.0f} prompt tokens are the same in each request", why),
        gain=modelled(1 / (1 - min(0.95, saved)), 0.4),
        weight=saved,
        setting=s,
        confidence="high",
    )


def _read_again(view: View, s: Setting, shared: float, prompt: float) -> str | None:
    """What says that the shared part is not reused; None where it is, or where nothing tells."""
    g, possible = s.group, shared / prompt
    if g.prefix_cache_hit_rate is not None:
        if g.prefix_cache_hit_rate >= HIT * possible:
            return None
        return f"the prefix cache hits for {percent(g.prefix_cache_hit_rate)} of the tokens"
    if g.cached_tokens is not None:
        return (
            None if g.cached_tokens >= HIT * shared else f"{g.cached_tokens:,.0f} of them came from the cache"
        )
    fresh = next(
        (x for x in view.settings if x is not s and not x.group.shared_prefix_tokens and _alike(x, s)), None
    )
    if fresh is not None and s.ttft and fresh.ttft:
        if s.ttft < fresh.ttft * (1 - possible * LIKE_NEW):
            return None
        return (
            f"they take {seconds(s.ttft * 1e9)} to the first token, new ones {seconds(fresh.ttft * 1e9)}:"
            " nothing was reused"
        )
    if _off(s):
        return "the prefix cache is off"
    usual = s.prefill_with(prompt)
    if usual is None or s.prefill is None or s.prefill < LIKE_NEW * usual:
        return None
    return f"prefill takes {seconds(s.prefill * 1e9)}, what reading all of it takes ({seconds(usual * 1e9)})"


def _hits(s: Setting) -> float:
    return s.group.prefix_cache_hit_rate or 0.0


def _off(s: Setting) -> bool:
    for name in ("enable_prefix_caching", "prefix_caching", "cache_prompt"):
        if name in s.knobs:
            return s.knobs[name] in (False, 0, "false", "off")
    return s.knobs.get("disable_radix_cache") in (True, 1, "true")


def _alike(one: Setting, other: Setting) -> bool:
    a, b = one.group.prompt_tokens, other.group.prompt_tokens
    return bool(a and b and max(a, b) <= 1.25 * min(a, b))


RULE = Rule(Cause.PREFIX_NOT_REUSED, WORDS, in_steps, in_table)
