"""Drafting costs more than the accepted tokens save."""

from __future__ import annotations

import statistics
from itertools import permutations

from phasetrace.advise.drafting import best_length, drafting
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.contrast import like_with_like
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, measured, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze.tokens import decode_steps
from phasetrace.model import Goal, Part, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Draft fewer tokens (num_speculative_tokens about as many as are accepted), use a better draft, or"
        " disable speculation (speculative_config), above all at large batch."
    ),
    tradeoff=(
        "Where acceptance is high and the batch small, speculation helps: inputs whose drafts are accepted"
        " (code edits, quotes) lose their gain."
    ),
    commands={
        "vllm": ("--speculative-config '{\"num_speculative_tokens\": 2, ...}'  # or leave it out",),
        "sglang": ("--speculative-num-steps 1 --speculative-num-draft-tokens 2  # or leave them out",),
        "transformers": (
            "model.generate(**inputs)  # without assistant_model / prompt_lookup_num_tokens",
            "assistant.generation_config.num_assistant_tokens = 2",
        ),
        "llama.cpp": ("llama-server --draft-max 2  # or no --model-draft",),
    },
)
OWNS = 0.25  # of the time: what decode must own before its drafts are worth a look
SPECULATIVE = ("assisted", "prompt_lookup")
# Of a step without its drafted positions: what writing the drafts may still have taken, which no step tells
# apart. A run with and one without (n-grams, a vLLM for CPUs, as much of the machine) were off by 27 %.
DRAFTER = 1 / 3
CLEAR_LOSS = 1.05  # times a plain step a token: below, drafting is a draw
DRAFTING = 0.2  # of a step: beside a forward pass, it should be a few hundredths
DRAFTERS = (
    "num_speculative_tokens",
    "speculative_num_draft_tokens",
    "speculative_num_steps",
    "draft_max",
    "num_assistant_tokens",
    "prompt_lookup_num_tokens",
)
SPECULATING = (
    *DRAFTERS,
    "speculative_method",
    "speculative_config",
    "speculative_model",
    "speculative_algorithm",
    "assistant_model",
)
PAYS = 1.1  # times faster: what drafting has to win, for the memory and the variance that it brings
POOR = 0.35  # of the drafted tokens are accepted: below, shorter drafts win whatever a draft costs


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """A token with drafts took longer than a plain step."""
    if evidence.engine != "transformers":
        return _in_shared_steps(evidence)
    speculating = [r for r in evidence.requests if r.request.mode in SPECULATIVE]
    counted = [(r, n) for r in speculating if (n := decode_steps(r.request, evidence.table))]
    decode = sum(r.phase_ns(Phase.DECODE) for r in speculating)
    if not speculating or evidence.share(decode) < OWNS:
        return None
    if not counted:
        return Measure("steps, to count the tokens that each verification accepted")
    steps = sum(n for _, n in counted)
    tokens = sum((r.request.longest_output or 1) - 1 for r, _ in counted)
    spent = sum(r.phase_ns(Phase.DECODE) for r, _ in counted)
    draft = sum(r.part_ns(Phase.DECODE, Part.DRAFT) for r, _ in counted)
    plain = [r.tpot_ns for r in evidence.requests if r.request.mode not in SPECULATIVE and r.tpot_ns]
    # A plain step takes no longer than a verification, which computes more positions and reads the same
    # weights.
    each = statistics.median(plain) if plain else (spent - draft) / steps
    if tokens == 0 or spent / tokens < CLEAR_LOSS * each:
        return None
    saved = spent - each * tokens
    return Seen(
        saved,
        evidence=(
            f"a step gives {tokens / steps:.2f} tokens; {percent(draft / spent)} of decode is drafting",
            f"{seconds(spent / tokens)} a token with drafts; a plain step takes"
            f" {'' if plain else 'at most '}{seconds(each)}",
        ),
        prediction=predict(evidence, Saving(decode_ns=saved, least=0.8, most=1.0 if plain else 1.5)),
    )


def _in_shared_steps(evidence: Evidence) -> Seen | Measure | None:
    decode, stated = evidence.phase_ns(Phase.DECODE), evidence.knob(*DRAFTERS)
    if not stated or not decode or evidence.goal is Goal.TTFT:
        return None
    found = drafting(evidence)
    if found is None:
        return Measure("how many positions each decode step computed, and gave")
    now, plain = found.step_ns / found.given, found.plain_ns
    if now < CLEAR_LOSS * plain and (found.seen or found.given >= CLEAR_LOSS):
        return None
    spent = decode * found.share
    saved = spent * max(0.0, 1 - plain / now)
    drafter = DRAFTER * (spent - saved) / saved if saved else 0.0
    fewer = round(found.accepted * found.drafted)
    return Seen(
        saved,
        evidence=(
            f"{found.drafted:.2g} tokens are drafted for each in a step and {percent(found.accepted)} of them"
            f" are right: a step gives {found.given:.2f} tokens a sequence",
            f"a step that verifies drafts takes {seconds(found.step_ns)}, {seconds(now)} a token; without"
            f" drafts it would take {'about' if found.seen else 'at most'} {seconds(plain)}",
        ),
        confidence="high" if found.seen else "medium",
        fix="Disable speculation (speculative_config)"
        + (
            f", or draft fewer tokens: {fewer} instead of {stated:,.0f} (num_speculative_tokens)."
            if fewer
            else f", or draft with something better: of {stated:,.0f} drafted tokens hardly one is right."
        ),
        commands={
            "vllm": (
                "# leave out --speculative-config",
                *((f"--speculative-config.num_speculative_tokens {fewer}",) if fewer else ()),
            )
        },
        prediction=predict(
            evidence, Saving(decode_ns=saved, least=0.6, most=1 + max(drafter, 0.15 if found.seen else 0.5))
        ),
    )


def in_table(view: View) -> Told | None:
    """The user tried without, drafting takes what it gives, or few of the drafts are accepted."""
    found = _tried(view) or _unpaid(view)
    if found is not None or view.goal is Goal.TTFT:
        return found
    return _slow_drafts(view.subject) or _wrong_drafts(view.subject)


def _tried(view: View) -> Told | None:
    for pair in view.compared:
        more = _drafted(pair.worse) > _drafted(pair.better)
        on = pair.worse.knobs.get("speculative_method") and not pair.better.knobs.get("speculative_method")
        if {"speculative_tokens", *SPECULATING} & set(pair.differs) and (more or on):
            if pair.worse.group.order != "first" and pair.goal is not Goal.TTFT:
                return tried(view, pair, "speculative_tokens")
    return None


def _unpaid(view: View) -> Told | None:
    """A group that drafts is not faster, by what pays, than the same without."""
    for worse, plain in permutations(view.settings, 2):
        if not _drafted(worse) or _drafted(plain) or plain.group.speculative_tokens != 0:
            continue
        known = [like_with_like(plain, worse, goal) for goal in (Goal.TPOT, Goal.THROUGHPUT, Goal.E2E)]
        won = next((ratio for ratio in known if ratio is not None), None)
        if won is None or won > PAYS or worse.group.order == "first":
            continue
        return Told(
            Tier.MEASURED,
            (
                f"{worse.name} drafts {_drafted(worse):,.0f} tokens a step and takes {percent(1 / won)} of"
                f" the time of {plain.name} without drafts: they win nothing",
            ),
            gain=measured(1 / won) if won < 1 else None,
            weight=max(0.16, 1 - won),
            setting=worse,
            confidence="high" if won < 1 else "medium",
        )
    return None


def _slow_drafts(s: Setting) -> Told | None:
    """Drafting takes a larger part of a step than what it gives is worth."""
    spent, gained = s.group.draft_s, max(1.0, s.group.accepted_length or 1.0)
    if not spent or not s.step:
        return None
    part = spent / max(s.step, spent)
    if part < 1 - 1 / gained or part < DRAFTING:
        return None
    return Told(
        Tier.MEASURED,
        (
            f"drafting takes {seconds(spent * 1e9)}, {percent(part)} of a step, for {gained:.2g} tokens"
            " a step",
        ),
        gain=modelled(max(1.16, (1 - part) ** -1 / gained), 0.5),
        weight=max(0.2, part - (1 - 1 / gained)),
    )


def _wrong_drafts(s: Setting) -> Told | None:
    """Few drafted tokens are accepted, or a token takes longer than it would without."""
    drafted, accepted = _drafted(s), s.group.accepted_length
    if not drafted or accepted is None or accepted <= 0:
        return None
    plain = s.step_expected
    slower = s.tpot / plain if s.tpot and plain else None
    loses = slower is not None and slower >= PAYS
    poor = max(0.0, accepted - 1) / drafted < POOR and (slower is None or slower > 0.7)
    if not (loses or poor):
        return None
    better = None
    if s.tpot is not None and s.step is not None:
        length, token = best_length(drafted, accepted, s.step, plain)
        better = (length, s.tpot / token) if token < s.tpot else None
    return Told(
        Tier.FAULT,
        (
            f"{drafted:,.0f} tokens are drafted in each step and {accepted:.3g} come out of it",
            f"a token takes {seconds(s.tpot * 1e9)}; without drafts about {seconds(plain * 1e9)}"
            if s.tpot and plain
            else None,
            f"at this acceptance {better[0]} drafted tokens would be best" if better else None,
        ),
        gain=modelled(better[1], 0.3) if better else None,
        weight=max(0.2, 1 - 1 / better[1]) if better else 0.3,
        confidence="high" if loses and poor else "medium",
    )


def _drafted(s: Setting) -> float:
    return s.group.speculative_tokens or s.knob(*DRAFTERS) or 0.0


RULE = Rule(Cause.SPECULATION_LOSS, WORDS, in_steps, in_table)
