"""Causes on the host: what the loop around the model does while the device waits."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.words import count, percent, seconds
from phasetrace.model import Finding, Goal, NotEnoughData, Part, Phase
from phasetrace.semconv import Cause, CausePhase

STREAM_SHARE = 0.1  # of the requests' time: handing a token over to a queue takes microseconds
GC_SHARE = 0.03  # of the requests' time: collections of a small heap take less than a thousandth
GAP_SHARE = 0.15  # of decode: the line below which DESIGN.md calls a system healthy
OVERLAPPED = 0.8  # of that: what depends on the step's tokens cannot be done ahead
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


def host_gap(evidence: Evidence) -> Finding | NotEnoughData | None:
    """The device of a server waits while the scheduler and the output processing work between its steps."""
    decode = evidence.phase_ns(Phase.DECODE)
    if evidence.engine == "transformers" or evidence.goal is Goal.TTFT or not decode:
        return None
    host = (Part.SCHEDULE, Part.OUTPUT, Part.HOST_GAP)
    spent = {part: evidence.part_ns(part, Phase.DECODE) for part in host}
    other = evidence.part_ns(Part.OTHER, Phase.DECODE) if spent[Part.SCHEDULE] else 0  # the loop around them
    gap = float(sum(spent.values()) + other)
    if gap < GAP_SHARE * decode:
        return None
    held = evidence.holding_back(gap)
    if held is None and evidence.knobs.get("async_scheduling"):
        return NotEnoughData(
            Cause.HOST_GAP, "device times of the steps: scheduling may overlap with the device's work"
        )
    gap = gap if held is None else held
    if gap < GAP_SHARE * decode:
        return None
    overlapped = bool(evidence.knobs.get("async_scheduling"))
    return Finding(
        cause=Cause.HOST_GAP,
        phase=CausePhase.HOST,
        ns=int(gap),
        share=evidence.share(gap),
        confidence="high" if held is not None else "medium",
        evidence=(
            f"{percent(gap / decode)} of decode passes outside the forward pass:"
            f" {seconds(spent[Part.SCHEDULE])} scheduling, {seconds(spent[Part.OUTPUT])} processing outputs,"
            f" {seconds(spent[Part.HOST_GAP] + other)} between",
            f"asynchronous scheduling is {'on' if overlapped else 'off'}",
        ),
        recommendation=(
            "Take host work out from between steps: "
            + ("" if overlapped else "asynchronous (overlapped) scheduling, ")
            + "fewer outputs a second (stream_interval), more CPU for the engine core, a newer engine."
        ),
        commands=(
            *(() if overlapped else ("--async-scheduling",)),
            "--stream-interval 8",
        )
        if evidence.engine == "vllm"
        else evidence.typed(Cause.HOST_GAP),
        tradeoff="Steps scheduled ahead compute a token more for requests that end; streams come in lumps.",
        prediction=predict(evidence, Saving(decode_ns=gap * OVERLAPPED, least=0.4, most=1.2)),
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
        commands=evidence.typed(
            Cause.GC_PAUSE,
            ("gc.collect(); gc.freeze()  # after the model is loaded\ngc.set_threshold(100_000, 50, 1000)",),
        ),
        tradeoff="Cycles of garbage live longer: watch the memory of the process.",
        prediction=predict(
            evidence,
            Saving(early, by_phase[Phase.DECODE], by_phase[Phase.DELIVERY], least=0.7, most=1.0),
        ),
    )
