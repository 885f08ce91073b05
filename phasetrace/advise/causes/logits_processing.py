"""Grammar masks, penalties, logprobs or sampling after the forward pass."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.contrast import Pair
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, modelled, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal, Part, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Do less after the forward pass: no repetition penalty (1.0), fewer or no logprobs, a faster grammar"
    " backend (masks on the device, xgrammar), sampling on the device.",
    tradeoff="Output changes with the processors; keep those that the task needs, as tensor operations.",
    commands={
        "vllm": ("SamplingParams(repetition_penalty=1.0, logprobs=None)",),
        "sglang": ("--grammar-backend xgrammar",),
        "transformers": (
            "model.generate(**inputs, repetition_penalty=1.0, no_repeat_ngram_size=0)",
            "model.generate(**inputs, logits_processor=None, do_sample=False)",
        ),
    },
)
PROCESSING = 0.15  # of decode, or of a step: greedy choice alone takes under 5 %
CHOOSING = 0.03  # of decode: what choosing a token takes in any case
FIRST = {
    "repetition_penalty": "Set repetition_penalty to 1.0 (penalties off).",
    "logprobs": "Ask for no logprobs, or fewer.",
    "grammar": "Use a faster grammar backend (xgrammar), or free text with a check afterwards.",
}
ON_LOGITS = (
    "repetition_penalty",
    "logprobs",
    "grammar",
    "presence_penalty",
    "frequency_penalty",
    "prompt_logprobs",
    "guided_decoding_backend",
    "structured_outputs_backend",
)


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Its parts were timed, and hold the device back."""
    decode = evidence.phase_ns(Phase.DECODE)
    logits = evidence.part_ns(Part.LOGITS, Phase.DECODE)
    sampling = evidence.part_ns(Part.SAMPLING, Phase.DECODE)
    first = evidence.part_ns(Part.LOGITS, Phase.PREFILL)
    if not decode or logits + sampling < PROCESSING * decode:
        return None
    held = evidence.holding_back(logits + sampling)
    if held is None:
        return Measure("device times of the steps: the processors may only wait for the device")
    if held < PROCESSING * decode:
        return None
    tokens = sum(r.request.longest_output or 0 for r in evidence.requests)
    avoidable = max(0.0, held - CHOOSING * decode)
    penalties = [v for v in evidence.setting("repetition_penalty") if isinstance(v, (int, float)) and v != 1]
    return Seen(
        logits + sampling,
        evidence=(
            f"{percent((logits + sampling) / decode)} of decode comes after the forward pass:"
            f" {seconds(logits)} logits processors, {seconds(sampling)} choosing the token",
            f"{seconds((logits + sampling) / tokens)} a token" if tokens else None,
            f"a repetition penalty of {penalties[0]:g} is set" if penalties else None,
        ),
        confidence="medium" if evidence.asynchronous else "high",
        fix=_less(["repetition_penalty"]) if penalties else "",
        prediction=predict(evidence, Saving(first_ns=first, decode_ns=avoidable, least=0.7, most=1.0)),
    )


def in_table(view: View) -> Told | None:
    """The user tried without, its time was measured, or it is on and steps take longer than they should."""
    if view.goal is Goal.TTFT:
        return None
    for pair in view.compared:
        names = [n for n in ON_LOGITS if n in pair.differs and _more_work(pair, n)]
        if names and pair.goal is not Goal.TTFT:
            return tried(
                view,
                pair,
                " ".join(names),
                fix=_less(names),
            )
    s, g = view.subject, view.subject.group
    on = [name for name in FIRST if _on(s, name)]
    if g.sampling_s and (s.step is None or g.sampling_s >= PROCESSING * s.step):
        part = min(0.95, g.sampling_s / s.step) if s.step else 0.3
        return Told(
            Tier.MEASURED,
            (
                (f"after the forward pass, a step spends {seconds(g.sampling_s * 1e9)} on choosing the token")
                + (f", {percent(part)} of it" if s.step else ""),
                f"set: {', '.join(on)}" if on else None,
            ),
            fix=_less(on),
            gain=without(g.sampling_s, s.step),
            weight=part,
        )
    if on and s.slower is not None and s.slower >= 2.2 and s.devices < 2 and not g.host_gap_s:
        return Told(
            Tier.FAULT,
            (f"a step takes {times(s.slower)} of what it should, and these are set: {', '.join(on)}",),
            fix=_less(on),
            gain=modelled(s.slower, 0.6),
            weight=1 - 1 / s.slower,
            confidence="low",
        )
    return None


def _less(names: list[str]) -> str:
    return " ".join([*(FIRST[name] for name in names if name in FIRST), WORDS.fix])


def _on(s: Setting, name: str) -> bool:
    value = getattr(s.group, name)
    return (
        value is not None
        and value is not False
        and value != 0
        and not (name == "repetition_penalty" and value == 1.0)
    )


def _more_work(pair: Pair, name: str) -> bool:
    if name == "repetition_penalty":
        return _on(pair.worse, name) and not _on(pair.better, name)
    if name in ("grammar", "logprobs"):
        a, b = getattr(pair.worse.group, name), getattr(pair.better.group, name)
        return bool(a) and (
            not b
            or (isinstance(a, int | float) and isinstance(b, int | float) and a > b)
            or isinstance(a, str)
        )
    return bool(pair.worse.knobs.get(name))


RULE = Rule(Cause.LOGITS_PROCESSING, WORDS, in_steps, in_table)
