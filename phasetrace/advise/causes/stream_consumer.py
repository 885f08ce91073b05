"""Handing tokens to the user holds the loop back."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.told import Told, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.model import Goal, Part, Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Hand tokens over outside the generation loop: a queue and a thread of its own for the consumer,"
    " several tokens an update, less work in each (no re-rendering of the whole text), or no streaming.",
    tradeoff="Text appears a little later; tokens that are not consumed yet wait in memory.",
    commands={
        "transformers": (
            "streamer = TextIteratorStreamer(tokenizer, skip_prompt=True)  # put() only fills a queue\n"
            "Thread(target=model.generate, kwargs=dict(inputs, streamer=streamer)).start()\n"
            "for text in streamer:\n"
            "    show(text)  # as slow as it likes",
        ),
        "vllm": ("--stream-interval 8",),
        "sglang": ("--stream-interval 8",),
    },
)
OWNS = 0.1  # of the time: handing a token over to a queue takes microseconds
STAYS = 0.03  # of the streamer's time: putting tokens into a queue instead


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """The loop waits while the user's streamer handles each token."""
    first: float = evidence.part_ns(Part.STREAM, Phase.PREFILL)
    decode: float = evidence.part_ns(Part.STREAM, Phase.DECODE)
    rest: float = evidence.part_ns(Part.STREAM, Phase.DELIVERY)
    spent = int(first + decode + rest)
    if evidence.share(spent) < OWNS:
        return None
    held = evidence.holding_back(spent)
    if held is None:
        return Measure("device times of the steps: the streamer may only wait for the device")
    if evidence.share(held) < OWNS:
        return None
    first, decode, rest = (ns * held / spent for ns in (first, decode, rest))
    spent = round(held)
    tokens = sum(r.request.longest_output or 0 for r in evidence.requests)
    return Seen(
        spent,
        evidence=(
            f"{percent(evidence.share(spent))} of the time passes inside the streamer: {seconds(spent)}",
            f"{seconds(spent / tokens)} a token, while the model waits" if tokens else None,
        ),
        confidence="medium" if evidence.asynchronous else "high",
        prediction=predict(
            evidence,
            Saving(
                first * (1 - STAYS), decode * (1 - STAYS), rest * (1 - STAYS), least=0.9, most=1 / (1 - STAYS)
            ),
        ),
    )


def in_table(view: View) -> Told | None:
    """The time of it was measured, or the user tried without."""
    s, g = view.subject, view.subject.group
    total = s.metric(view.goal) if view.goal in (Goal.E2E, Goal.TPOT) else s.e2e
    if g.stream_s:
        unit = s.step if s.step and g.stream_s <= 1.1 * s.step else max(total or 0, g.stream_s)
        if unit and g.stream_s >= OWNS * unit:
            return Told(
                Tier.MEASURED,
                (
                    f"handing tokens over takes {seconds(g.stream_s * 1e9)},"
                    f" {percent(min(1, g.stream_s / unit))} of the time",
                ),
                gain=without(g.stream_s, unit),
                weight=min(0.95, g.stream_s / unit),
            )
    for pair in view.pairs:
        if pair.goal is Goal.TTFT:
            continue
        if "streaming" in pair.differs:
            if pair.worse.group.streaming and pair.better.group.streaming is False:
                return tried(view, pair, "streaming")
        elif any("stream" in name for name in pair.differs):
            return tried(view, pair, "the streamer")
    return None


RULE = Rule(Cause.STREAM_CONSUMER, WORDS, in_steps, in_table)
