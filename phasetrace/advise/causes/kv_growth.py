"""Reading the KV cache of long contexts owns the step."""

from __future__ import annotations

from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Words
from phasetrace.advise.table.step import FLAT, HALF, NEAR, stepped
from phasetrace.advise.table.told import Told, modelled
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Read fewer KV cache bytes: an 8-bit (fp8) KV cache, a shorter context, a sliding window, or fewer"
        " sequences at a time."
    ),
    tradeoff="A smaller cache may cost quality; a shorter context loses text.",
    commands={
        "vllm": ("--kv-cache-dtype fp8",),
        "sglang": ("--kv-cache-dtype fp8_e5m2",),
        "llama.cpp": ("llama-server --cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on",),
        "transformers": ('model.generate(**inputs, cache_implementation="quantized")',),
    },
)
KV_OWNS = 0.38  # of the bytes read: above, halving the KV cache brings more than most fixes of the weights
LONG_CONTEXT = 2000  # tokens: below, the KV cache of a sequence is a hundredth of most models' weights
SEEN = 0.15  # of what a step reads: from there on a growing KV cache can be what makes it longer
LONGER = 2.0  # times the context, between two groups


def in_table(view: View) -> Told | None:
    """A token takes longer with a longer context, or most of what a step reads is KV cache."""
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
        return Told(
            Tier.MEASURED,
            (
                f"a token takes {times(ratio)} as long at {worse.context:,.0f} tokens of context as at"
                f" {better.context:,.0f}"
                f" ({seconds((worse.tpot or 0) * 1e9)} and {seconds((better.tpot or 0) * 1e9)})",
                "the batch is the same: the KV cache is what grows",
            ),
            gain=modelled(1 / (1 - (1 - 1 / ratio) * HALF)),
            weight=(1 - 1 / ratio) * HALF,
            setting=worse,
            confidence="high" if worse.alone or worse.group.batch else "medium",
        )
    s = stepped(view)
    if (
        s is None
        or s.slower is None
        or s.slower > NEAR
        or s.kv_part is None
        or s.kv_part < KV_OWNS
        or not s.group.prompt_tokens
    ):
        return None
    return Told(
        Tier.BOUND,
        (
            f"{percent(s.kv_part)} of what a step reads is KV cache ({s.context:,.0f} tokens in each of"
            f" {s.width or 1:,.0f} sequences)",
            f"a step takes {seconds((s.step or 0) * 1e9)}, and reading it all at least"
            f" {seconds((s.step_floor or 0) * 1e9)}",
        ),
        gain=modelled(1 / (1 - s.kv_part * HALF / max(1.0, s.slower))),
        weight=max(0.32, s.kv_part * HALF),
        setting=s,
    )


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return max(one, other) <= 1.25 * min(one, other)


RULE = Rule(Cause.KV_GROWTH, WORDS, None, in_table)
