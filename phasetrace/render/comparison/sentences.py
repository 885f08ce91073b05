"""What is said of a comparison in every format: the verdict, what was compared with what, what noise is."""

from __future__ import annotations

from collections.abc import Iterator

from phasetrace.model import (
    Comparison,
    FindingChange,
    Matched,
    MetricChange,
    Mix,
    Prediction,
    Statistic,
    Word,
)
from phasetrace.render import units

ORDER = ("ttft", "tpot", "itl", "e2e", "throughput", "failed")
OF = {Statistic.P50: " p50", Statistic.P95: " p95", Statistic.EQUAL_LENGTH: ", equal length"}
WHY = {
    Word.FEW: "Noise would hide a difference that matters: record more requests{enough}.",
    Word.MACHINE: "One run had less of the machine: if that was not the change, record both again.",
    Word.UNLIKE: "The requests differ, and so this is no measure of the system.",
}
NOTE_STARVED = 0.05  # of the time that threads wanted a CPU: with less, nobody needs to know


def verdict(c: Comparison) -> str:
    """The answer for the goal, in one sentence and, where needed, a second."""
    m = c.of_goal()
    if m is None:
        return f"{Word.FEW}: the recordings do not both hold {units.metric_name(c.before.goal)}."
    said = f"{m.word}: {named(m)} {values(m)}, {times_better(m)}."
    if m.word in WHY:
        said += " " + WHY[m.word].format(enough=f", about {m.enough:,}" if m.enough else "")
    failed = next((f for f in c.metrics if f.metric == "failed" and f.word is Word.WORSE), None)
    return said + (f" More requests fail: {values(failed)}." if failed else "")


def named(m: MetricChange) -> str:
    """As "TTFT", "TTFT p95", "e2e, equal length"."""
    return units.metric_name(m.metric) + OF.get(m.statistic, "")


def values(m: MetricChange) -> str:
    """As "30.0 s -> 9.10 s"."""
    return " -> ".join(value(m.metric, amount) for amount in (m.before, m.after))


def value(metric: str, amount: float) -> str:
    """A metric's value as people read it."""
    if metric == "failed":
        return units.share(amount)
    return units.rate(amount) if metric.endswith("tok_s") else units.duration(amount)


def times_better(m: MetricChange) -> str:
    """As "3.3x (2.9-3.8)"; without an interval where there is none; nothing of shares."""
    if m.statistic is Statistic.SHARE:
        return ""
    said = units.ratio(m.ratio)
    if m.low is None or m.high is None:
        return said
    return f"{said} ({units.ratio(m.low)[:-1]}-{units.ratio(m.high)[:-1]})"


def in_order(c: Comparison) -> list[MetricChange]:
    """The metrics as people are used to see them."""
    return sorted(c.metrics, key=lambda m: ORDER.index(m.metric.partition("_")[0]))


def fate(f: FindingChange) -> str:
    """A cause: what became of it, and whether what was predicted came true."""
    share = " -> ".join(units.share(found.share) for found in (f.before, f.after) if found)
    where = (f.before or f.after).phase if f.before or f.after else ""  # type: ignore[union-attr]
    said = f"{where} {share}"
    promised = f.before.prediction if f.before else None
    if promised is None or f.measured is None:
        return said
    inside = "inside" if f.inside else "outside"
    measured = _in_unit(promised, f.measured)
    if f.at_share is not None:
        measured += f" ({_in_unit(promised, f.at_share)} with as much of the CPUs as before)"
    return f"{said}; predicted {units.gain(promised)}; measured {measured}: {inside}"


def _in_unit(promised: Prediction, measured: float) -> str:
    if promised.metric.endswith("tok_s"):
        return units.rate(measured)
    return units.duration(measured * units.NS_PER_S)


def likeness(c: Comparison) -> Iterator[str]:
    """What was compared with what, and what else than the system differs."""
    mix = c.mix
    yield _matched(mix)
    if (
        mix.prompt_tokens
        and mix.matched in (Matched.CLASSES, Matched.ALL)
        and (said := _longer(*mix.prompt_tokens))
    ):
        yield f"Prompts are {said} in AFTER."
    if mix.prompts and mix.prompts[0] != mix.prompts[1]:
        yield (
            f"A request holds {_number(mix.prompts[0])} -> {_number(mix.prompts[1])} prompts: its TTFT and"
            " e2e are no measure of the system."
        )
    if mix.output_tokens and (said := _longer(*mix.output_tokens)):
        yield f"Answers are {said} in AFTER, {_why_longer(c)}."
    if mix.load_ratio:
        than, at_once, waits = ("more", "more", "grow") if mix.load_ratio > 1 else ("less", "fewer", "shrink")
        often = units.ratio(max(mix.load_ratio, 1 / mix.load_ratio))
        yield f"AFTER was asked {often} {than} often, with {at_once} at once: waits {waits} by that alone."


def _why_longer(c: Comparison) -> str:
    if c.mix.cap_changed:
        return "as was set: that is part of the change"
    if any(m.statistic is Statistic.EQUAL_LENGTH for m in c.metrics):
        return "and nobody set that: see e2e and throughput at equal length"
    return "and nobody set that"


def _matched(mix: Mix) -> str:
    before, after = mix.compared
    of = f"{before:,} of {mix.requests[0]:,} requests with {after:,} of {mix.requests[1]:,}"
    if mix.matched is Matched.PAIRS:
        return f"The same prompts, by length and order: {before:,} pairs."
    if mix.matched is Matched.PROMPTS:
        return "The same prompts, by length, put into other requests: all are compared with all."
    if mix.matched is Matched.CLASSES:
        return f"Other requests: compared by class of prompt length, in BEFORE's proportions ({of})."
    if mix.prompt_tokens is None:
        return "Prompt lengths are not known, and so neither is whether the requests were alike."
    return "Prompts of other lengths: nothing is alike, and no difference says anything of the system."


def _longer(before: float, after: float) -> str:
    """As "2.1x longer (128 -> 269 tokens)"; empty where both are about as long."""
    ratio = max(before, after) / max(1e-9, min(before, after))
    if ratio < 1.1:
        return ""
    tokens = f"{_number(before)} -> {_number(after)} tokens"
    return f"{units.ratio(ratio)} {'longer' if after > before else 'shorter'} ({tokens})"


def _number(mean: float) -> str:
    """A mean of counts: whole where it is one, or large."""
    return f"{mean:,.0f}" if mean >= 100 or mean.is_integer() else units.three_digits(mean)


def noise(c: Comparison) -> Iterator[str]:
    """What the intervals hold, and what they do not."""
    yield (
        "In brackets is what noise leaves open (95 %): blocks of neighbouring requests drawn again, and"
        f" {100 * c.runs_differ:.3g} % more either way, since two runs of one program differ by that with"
        " nothing changed."
    )
    if c.starved and max(c.starved) >= NOTE_STARVED:
        yield (
            f"Threads that wanted a CPU had none for {units.share(c.starved[0])} of the time before,"
            f" {units.share(c.starved[1])} after" + ("; the intervals allow for that." if c.widened else ".")
        )
