"""A grammar or schema is being compiled."""

from __future__ import annotations

import statistics

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, doubt, predict
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.contrast import over
from phasetrace.advise.table.told import Told, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.waiting import scheduler_ns
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Goal, Part, Phase, RequestBreakdown, Wait
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Compile each grammar once: cache compiled grammars, send the same schema text each time so that"
        " its grammar is found again, compile them before serving, or use a faster structured-output backend"
        " (xgrammar)."
    ),
    tradeoff="Compiled grammars stay in memory; other backends support other parts of JSON schema.",
    commands={
        "vllm": ("--structured-outputs-config.backend xgrammar",),
        "sglang": ("--grammar-backend xgrammar",),
    },
)
CACHED = 0.9  # of compiling is saved where a grammar was compiled before


def in_steps(evidence: Evidence) -> Seen | None:
    """Requests that asked for structured output waited for it, by the engine or in its front."""
    structured = [r for r in evidence.requests if r.request.settings.get("structured")]
    measured = [r.request.grammar_ns for r in structured if r.request.grammar_ns is not None]
    spent = float(sum(measured))
    if not measured and evidence.queue is not None:
        spent = scheduler_ns(evidence) * evidence.queue.share(Wait.GRAMMAR)
    plain = [r for r in evidence.requests if not r.request.settings.get("structured")]
    in_front = sum(_front(r) for r in structured) - len(structured) * _usual_front(plain)
    if in_front >= spent:
        spent += max(0.0, in_front)
    if not structured or not evidence.whole_ns or spent < WORTH * evidence.whole_ns:
        return None
    return Seen(
        spent,
        evidence=(
            f"{count(len(structured), 'request')} asked for structured output; their grammars took"
            f" {seconds(spent)}, {percent(spent / evidence.whole_ns)} of {evidence.whole}",
            f"{seconds(statistics.median(measured))} (median) pass until a grammar is compiled"
            if measured
            else None,
        ),
        confidence="high" if measured or plain else "medium",
        prediction=predict(
            evidence, Saving(first_ns=spent * CACHED, least=0.5 - doubt(measured) / 2, most=1 / CACHED)
        ),
    )


def _front(request: RequestBreakdown) -> float:
    return request.phase_ns(Phase.FRONTEND) - request.part_ns(Phase.FRONTEND, Part.TOKENIZE)


def _usual_front(plain: list[RequestBreakdown]) -> float:
    """Of requests without a grammar; infinite without any, so that nothing is laid at the grammar's door."""
    return statistics.median(_front(r) for r in plain) if plain else float("inf")


def in_table(view: View) -> Told | None:
    """Its time was measured, the first request with a grammar is slow, or one waits with nobody else."""
    s, g = view.subject, view.subject.group
    total = s.metric(view.goal) if view.goal is not Goal.THROUGHPUT else s.e2e
    if g.grammar_compile_s and g.grammar_compile_s >= WORTH * (total or s.ttft or g.grammar_compile_s):
        spent = g.grammar_compile_s
        return Told(
            Tier.MEASURED,
            (
                f"compiling the grammar takes {seconds(spent * 1e9)},"
                f" {percent(min(1, spent / (total or spent)))} of the time",
            ),
            gain=without(spent, max(total or 0, spent)),
            weight=min(1, spent / (total or spent)),
            seconds=spent,
        )
    pair = view.contrast("grammar")
    first = next((p for p in view.pairs if "order" in p.differs and p.worse.group.order == "first"), None)
    if first is not None and first.worse.group.grammar and first.better.group.grammar:
        return tried(view, first, "a grammar seen for the first time (order)")
    if pair is None and g.grammar and g.queue_s and s.cap is None and (s.alone or s.width is None):
        rest = max(s.ttft or 0.0, g.queue_s)
        if g.queue_s >= 0.5 * rest and view.goal is not Goal.TPOT:
            return Told(
                Tier.FAULT,
                (
                    f"a grammar is set, and the request waits {seconds(g.queue_s * 1e9)} in the queue",
                    "no other load is told that it could wait for",
                ),
                weight=g.queue_s / rest,
                seconds=g.queue_s,
            )
    if pair is None or not pair.worse.group.grammar:
        return None
    ttft = over(pair.worse.ttft, pair.better.ttft)
    tpot = over(pair.worse.group.tpot_s, pair.better.group.tpot_s)
    if ttft is not None and ttft >= 1.5 and (tpot is None or tpot < 1.25) and view.goal is not Goal.TPOT:
        return tried(view, pair, "a grammar")
    if "order" in pair.differs and pair.worse.group.order == "first":
        return tried(view, pair, "a new grammar")
    return None


RULE = Rule(Cause.GRAMMAR_COMPILE, WORDS, in_steps, in_table)
