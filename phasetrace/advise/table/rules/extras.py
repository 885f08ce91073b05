"""Work beside the plain forward pass: drafts, what is done to the logits, adapters."""

from __future__ import annotations

from phasetrace.advise.table.answer import Answer, Tier, candidate, measured, modelled, tried, without
from phasetrace.advise.table.contrast import Pair, like_with_like
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.model import Goal
from phasetrace.semconv import Cause

OWNS = 0.2  # of a step: beside a forward pass, each of these should be a few hundredths
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


def speculation_loss(view: View) -> Answer:
    """Drafting costs more than the accepted tokens save."""
    fix = (
        "Draft fewer tokens (num_speculative_tokens about as many as are accepted), use a better"
        " draft, or disable speculation (speculative_config), above all at large batch."
    )
    trade = "Where acceptance is high and the batch small, speculation helps: check per workload."
    for pair in view.compared:
        if "speculative_tokens" in pair.differs or set(SPECULATING) & set(pair.differs):
            if _drafted(pair.worse) > _drafted(pair.better) or (
                pair.worse.knobs.get("speculative_method") and not pair.better.knobs.get("speculative_method")
            ):
                if pair.worse.group.order != "first" and pair.goal is not Goal.TTFT:
                    return tried(view, Cause.SPECULATION_LOSS, pair, "speculative_tokens", fix, trade)
    unpaid = _unpaid(view)
    if unpaid is not None:
        worse, plain_one, won = unpaid
        return candidate(
            view,
            Cause.SPECULATION_LOSS,
            Tier.MEASURED,
            (
                f"{worse.name} drafts {_drafted(worse):,.0f} tokens a step and takes {percent(1 / won)}"
                " of the time of"
                f" {plain_one.name} without drafts: they win nothing",
            ),
            fix,
            tradeoff=trade,
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
        if part >= 1 - 1 / gained and part >= OWNS:
            return candidate(
                view,
                Cause.SPECULATION_LOSS,
                Tier.MEASURED,
                (
                    f"drafting takes {seconds(g.draft_s * 1e9)}, {percent(part)} of a step, for"
                    f" {gained:.2g} tokens a step",
                ),
                fix,
                tradeoff=trade,
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
    loses = slower is not None and slower >= 1.1
    poor = share < POOR and (slower is None or slower > 0.7)
    if not (loses or poor):
        return None
    best = _best(s, drafted, accepted, plain)
    if best is not None:
        said.append(f"at this acceptance {best[0]} drafted tokens would be best")
    return candidate(
        view,
        Cause.SPECULATION_LOSS,
        Tier.FAULT,
        tuple(said),
        fix,
        tradeoff=trade,
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


def logits_processing(view: View) -> Answer:
    """Masks, penalties, logprobs or sampling after the forward pass."""
    if view.goal is Goal.TTFT:
        return None
    fix = (
        "Do less after the forward pass: no repetition penalty (1.0), fewer or no logprobs, a"
        " faster grammar backend (masks on the device, xgrammar), sampling on the device."
    )
    for pair in view.compared:
        names = [n for n in ON_LOGITS if n in pair.differs and _more_work(pair, n)]
        if names and pair.goal is not Goal.TTFT:
            return tried(
                view,
                Cause.LOGITS_PROCESSING,
                pair,
                " ".join(names),
                _fix(names, fix),
                "Output changes where a penalty or a grammar goes.",
            )
    s, g = view.subject, view.subject.group
    if g.sampling_s and (s.step is None or g.sampling_s >= OWNS * s.step):
        part = min(0.95, g.sampling_s / s.step) if s.step else 0.3
        what = [n for n in ("repetition_penalty", "logprobs", "grammar") if _on(s, n)]
        return candidate(
            view,
            Cause.LOGITS_PROCESSING,
            Tier.MEASURED,
            (
                (f"after the forward pass, a step spends {seconds(g.sampling_s * 1e9)} on choosing the token")
                + (f", {percent(part)} of it" if s.step else ""),
                *((f"set: {', '.join(what)}",) if what else ()),
            ),
            _fix(what, fix),
            gain=without(g.sampling_s, s.step),
            weight=part,
        )
    on = [n for n in ("repetition_penalty", "logprobs", "grammar") if _on(s, n)]
    if on and s.slower is not None and s.slower >= 2.2 and s.devices < 2 and not g.host_gap_s:
        return candidate(
            view,
            Cause.LOGITS_PROCESSING,
            Tier.FAULT,
            (f"a step takes {times(s.slower)} of what it should, and these are set: {', '.join(on)}",),
            _fix(on, fix),
            gain=modelled(s.slower, 0.6),
            weight=1 - 1 / s.slower,
            confidence="low",
        )
    return None


def _fix(names: list[str], fix: str) -> str:
    first = {
        "repetition_penalty": "Set repetition_penalty to 1.0 (penalties off).",
        "logprobs": "Ask for no logprobs, or fewer.",
        "grammar": "Use a faster grammar backend (xgrammar), or free text with a check afterwards.",
    }
    return " ".join([*(first[n] for n in names if n in first), fix])


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
