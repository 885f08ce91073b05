"""Causes on the host: what the loop around the model does while the device waits."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Finding, NotEnoughData, Part, Phase
from phasetrace.semconv import Cause, CausePhase

STREAM_SHARE = 0.1  # of the requests' time: handing a token over to a queue takes microseconds
GC_SHARE = 0.03  # of the requests' time: collections of a small heap take less than a thousandth
STAYS = 0.03  # of the streamer's time: putting tokens into a queue instead


def stream_consumer(evidence: Evidence) -> Finding | NotEnoughData | None:
    """The loop waits while the user's streamer handles each token."""
    first: float = evidence.part_ns(Part.STREAM, Phase.PREFILL)
    decode: float = evidence.part_ns(Part.STREAM, Phase.DECODE)
    rest: float = evidence.part_ns(Part.STREAM, Phase.DELIVERY)
    spent = int(first + decode + rest)
    if evidence.share(spent) < STREAM_SHARE:
        return None
    held = evidence.holding_back(spent)
    if held is None:
        return NotEnoughData(
            Cause.STREAM_CONSUMER, "device times of the steps: the streamer may only wait for the device"
        )
    if evidence.share(held) < STREAM_SHARE:
        return None
    first, decode, rest = (ns * held / spent for ns in (first, decode, rest))
    spent = round(held)
    tokens = sum(r.request.longest_output or 0 for r in evidence.requests)
    return Finding(
        cause=Cause.STREAM_CONSUMER,
        phase=CausePhase.HOST,
        ns=spent,
        share=evidence.share(spent),
        confidence="medium" if evidence.asynchronous else "high",
        evidence=(
            f"{percent(evidence.share(spent))} of the time passes inside the streamer: {seconds(spent)}",
            *((f"{seconds(spent / tokens)} a token, while the model waits",) if tokens else ()),
        ),
        recommendation="Let the streamer only queue tokens, and consume them in another thread.",
        commands=(
            "streamer = TextIteratorStreamer(tokenizer, skip_prompt=True)  # put() only fills a queue\n"
            "Thread(target=model.generate, kwargs=dict(inputs, streamer=streamer)).start()\n"
            "for text in streamer:\n"
            "    show(text)  # as slow as it likes",
        ),
        tradeoff="Tokens that are not consumed yet wait in memory; a slow consumer still ends late.",
        prediction=predict(
            evidence,
            Saving(
                first * (1 - STAYS), decode * (1 - STAYS), rest * (1 - STAYS), least=0.9, most=1 / (1 - STAYS)
            ),
        ),
    )


def gc_pause(evidence: Evidence) -> Finding | NotEnoughData | None:
    """The garbage collector stops the process again and again."""
    by_phase = {phase: evidence.part_ns(Part.GC, phase) for phase in Phase}
    spent = sum(by_phase.values())
    if evidence.share(spent) < GC_SHARE:
        return None
    pauses = evidence.breakdown.recording.pauses
    longest = max((p.end_ns - p.begin_ns for p in pauses), default=0)
    full = sum(1 for p in pauses if p.detail.get("generation") == 2)
    early = by_phase[Phase.FRONTEND] + by_phase[Phase.QUEUE] + by_phase[Phase.PREFILL]
    return Finding(
        cause=Cause.GC_PAUSE,
        phase=CausePhase.HOST,
        ns=spent,
        share=evidence.share(spent),
        confidence="high",
        evidence=(
            f"{count(len(pauses), 'collection')} took {percent(evidence.share(spent))} of the requests' time,"
            f" {full} of them of all generations",
            f"the longest stopped the process for {seconds(longest)}",
        ),
        recommendation="Take what lives long out of the collector's sight, and collect less often.",
        commands=(
            "gc.collect(); gc.freeze()  # after the model is loaded\ngc.set_threshold(100_000, 50, 1000)",
        ),
        tradeoff="Cycles of garbage live longer: watch the memory of the process.",
        prediction=predict(
            evidence,
            Saving(early, by_phase[Phase.DECODE], by_phase[Phase.DELIVERY], least=0.7, most=1.0),
        ),
    )
