"""Drafting costs more than the accepted tokens save."""

from __future__ import annotations

import statistics

from phasetrace.advise.drafting import drafting
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
USUAL_DRAFT = 0.05  # of a step that drafting one token costs, where the table does not tell


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
    for pair in view.compared:
        if "speculative_tokens" in pair.differs or set(SPECULATING) & set(pair.differs):
            if _drafted(pair.worse) > _drafted(pair.better) or (
                pair.worse.knobs.get("speculative_method") and not pair.better.knobs.get("speculative_method")
            ):
                if pair.worse.group.order != "first" and pair.goal is not Goal.TTFT:
                    return tried(view, pair, "speculative_tokens")
    unpaid = _unpaid(view)
    if unpaid is not None:
        worse, plain_one, won = unpaid
        return Told(
            Tier.MEASURED,
            (
                f"{worse.name} drafts {_drafted(worse):,.0f} tokens a step and takes {percent(1 / won)}"
                " of the time of"
                f" {plain_one.name} without drafts: they win nothing",
            ),
            gain=measured(1 / won) if won < 1 else None,
            weight=max(0.16, 1 - won),
            setting=worse,
            confidence="high" if won < 1 else "medium",
        )
    s, g = view.subject, view.subject.group
    drafted, accepted = _drafted(s), g.accepted_length
    if view.goal is Goal.TTFT:
        return None
    if g.draft_s and s.step:
        part = g.draft_s / max(s.step, g.draft_s)
        gained = max(1.0, accepted or 1.0)
        if part >= 1 - 1 / gained and part >= DRAFTING:
            return Told(
                Tier.MEASURED,
                (
                    f"drafting takes {seconds(g.draft_s * 1e9)}, {percent(part)} of a step, for"
                    f" {gained:.2g} tokens a step",
                ),
                gain=modelled(max(1.16, (1 - part) ** -1 / gained), 0.5),
                weight=max(0.2, part - (1 - 1 / gained)),
            )
    if not drafted or accepted is None or accepted <= 0:
        return None
    plain = s.step_expected
    share = max(0.0, accepted - 1) / drafted
    said = [f"{drafted:,.0f} tokens are drafted in each step and {accepted:.3g} come out of it"]
    slower = s.tpot / plain if s.tpot and plain else None
    if slower is not None:
        said.append(
            f"a token takes {seconds((s.tpot or 0) * 1e9)}; without drafts about"
            f" {seconds((plain or 0) * 1e9)}"
        )
    loses = slower is not None and slower >= PAYS
    poor = share < POOR and (slower is None or slower > 0.7)
    if not (loses or poor):
        return None
    best = _best(s, drafted, accepted, plain)
    if best is not None:
        said.append(f"at this acceptance {best[0]} drafted tokens would be best")
    return Told(
        Tier.FAULT,
        tuple(said),
        gain=modelled(best[1], 0.3) if best else None,
        weight=max(0.2, 1 - 1 / best[1]) if best else 0.3,
        confidence="high" if loses and poor else "medium",
    )


def _unpaid(view: View) -> tuple[Setting, Setting, float] | None:
    """A group that drafts, the same without, and how many times faster drafting made it: not by what pays."""
    for worse in view.settings:
        for plain in view.settings:
            if _drafted(worse) and not _drafted(plain) and plain.group.speculative_tokens == 0:
                known = [
                    like_with_like(plain, worse, goal) for goal in (Goal.TPOT, Goal.THROUGHPUT, Goal.E2E)
                ]
                won = next((v for v in known if v is not None), None)
                if won is not None and won <= PAYS and worse.group.order != "first":
                    return worse, plain, won
    return None


def _drafted(s: Setting) -> float:
    return s.group.speculative_tokens or s.knob(*DRAFTERS) or 0.0


def _best(s: Setting, drafted: float, accepted: float, plain: float | None) -> tuple[int, float] | None:
    """The draft length that gives the least time a token, and how many times better that is.

    With acceptance p of each token, a step with k drafts yields (1 - p^(k+1)) / (1 - p) tokens (Leviathan
    et al. 2023, eq. 1); p follows from what the present length yields. A step costs the plain one and each
    drafted token.
    """
    if s.tpot is None or s.step is None:
        return None
    low, high = 0.0, 0.999
    for _ in range(40):
        p = (low + high) / 2
        low, high = (p, high) if _yield(p, drafted) < accepted else (low, p)
    p = (low + high) / 2
    base = plain if plain and plain < s.step else s.step / (1 + USUAL_DRAFT * drafted)
    each = max(0.0, s.step - base) / drafted
    times_of = {k: (base + each * k) / _yield(p, k) for k in range(0, int(drafted) + 1)}
    best = min(times_of, key=lambda k: times_of[k])
    return (best, s.tpot / times_of[best]) if times_of[best] < s.tpot else None


def _yield(p: float, k: float) -> float:
    return float((1 - p ** (k + 1)) / (1 - p))


RULE = Rule(Cause.SPECULATION_LOSS, WORDS, in_steps, in_table)
