"""A span's numbers, less those that cannot be true, and with those that the rest determines."""

from __future__ import annotations

import math
import re
from typing import Any

from phasetrace.mapping import Attributes, Kind
from phasetrace.read.dialects.dialect import Count, Dialect, Duration, In, Written
from phasetrace.read.doubts import Doubts

_NUMBER = re.compile(
    r"(-?[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE]-?[0-9]{1,3})?) ?(ns|us|µs|μs|ms|s|m|h)?", re.ASCII
)
_SUFFIXES = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LONGEST_NS = 10**9 * 86_400 * 30  # a month; a larger number is in another unit than its key says
_MOST_TOKENS = 1 << 48
WHOLE = 1e-4  # of the duration: a first token this near its end, with more to come, is the end itself
_OTHER_UNITS = {10**3: "milliseconds", 10**6: "microseconds"}  # where seconds are meant
_UNIT_APART = 0.1
CONTRADICTS = 0.25  # two ways to the same time per token: streams end with a chunk that holds no token
_MISSING = -1
_OF_STREAMS = "; servers add them to a stream when asked with `stream_options.include_usage`"

Durations = dict[Duration, int]


def durations(written: Written, dialect: Dialect, doubts: Doubts) -> Durations:
    """What the dialect's keys hold."""
    untrusted = dialect.doubts(written) if dialect.doubts is not None else {}
    found: Durations = {}
    attributes = written.span.attributes
    for duration, places in dialect.durations.items():
        ns = _first(attributes, places)
        if ns is None:
            continue
        if 0 <= ns <= _LONGEST_NS and not untrusted:
            found[duration] = round(ns)
        elif duration in untrusted:
            doubts.say(f"{duration} is refused: {untrusted[duration]}")
        elif math.isnan(ns) or ns > _LONGEST_NS:
            doubts.say(f"{duration} is refused: it is impossible")
        elif ns < 0:
            if dialect.missing is not None and ns == dialect.missing * places[0].unit:
                doubts.say(f"{duration} is unknown: {dialect.writer} writes {dialect.missing:g} for it")
            else:
                doubts.say(f"{duration} is refused: it is negative")
        else:
            found[duration] = round(ns)
    if dialect.prefill_holds_queue:
        _take_queue_out(found, dialect, doubts)
    _complete(found)
    return found


def in_seconds(found: Durations, length: int, doubts: Doubts) -> None:
    """Repair durations in another unit than their keys say, which the span's length tells."""
    e2e = found.get(Duration.E2E)
    for times, unit in _OTHER_UNITS.items():
        if e2e is not None and length > 0 and abs(e2e / length - times) <= _UNIT_APART * times:
            doubts.say(f"durations are {times:,} times the span's length, so they are in {unit}: read so")
            found.update({duration: round(ns / times) for duration, ns in found.items()})
            return


def counts(written: Written, dialect: Dialect, doubts: Doubts) -> dict[Count, int]:
    """What the dialect's keys count."""
    untrusted = dialect.doubts(written) if dialect.doubts is not None else {}
    attributes = written.span.attributes
    found: dict[Count, int] = {}
    for count, keys in dialect.counts.items():
        for key in keys:
            if (value := attributes.get(key)) is not None:
                break
        else:
            if count in dialect.told and written.span.error is None:
                hint = _OF_STREAMS if written.span.kind is Kind.CLIENT else ""
                doubts.say(f"{count} are unknown: no `{keys[0]}`{hint}")
            continue
        number = value if type(value) is int else _whole(value)
        if number == _MISSING:
            continue
        if count in untrusted:
            doubts.say(f"{count} are refused: {untrusted[count]}")
        elif number is None or not (count is Count.PROMPT) <= number < _MOST_TOKENS:
            doubts.say(f"{count} are refused: impossible")
        else:
            found[count] = number
    return found


def distrust(found: Durations, e2e: int, output: int | None, doubts: Doubts) -> None:
    """Take out what contradicts the whole, and fill in what the whole determines."""
    ttft, each = found.get(Duration.TTFT), found.get(Duration.TPOT)
    if output == 0 and found.get(Duration.DECODE):
        doubts.say("there are no output tokens, and yet there was decode: one of the two is wrong")
    if ttft is not None and output != 1 and Duration.DECODE not in found and 0 <= e2e - ttft <= WHOLE * e2e:
        doubts.say("time to first token is refused: it equals the duration, so it was not measured")
        ttft = found.pop(Duration.TTFT, None) and None
        each = found.pop(Duration.TPOT, None) and None
    if output is None or output < 2 or each is None:
        return
    if each == 0:
        doubts.say("time per output token is refused: it is zero")
    elif ttft is None and (first := e2e - each * (output - 1)) > 0:
        found[Duration.TTFT] = first
    elif ttft is not None and abs((e2e - ttft) / (output - 1) - each) > CONTRADICTS * each:
        if (e2e - ttft) / (output - 1) < each:
            doubts.say("time per output token is a chunk's, and chunks hold several tokens: not used")
        else:
            doubts.say("time per output token contradicts e2e, time to first token and tokens: not used")


def _take_queue_out(found: Durations, dialect: Dialect, doubts: Doubts) -> None:
    """Give a prefill that begins at the queue the meaning it has elsewhere."""
    queue = found.get(Duration.QUEUE)
    for duration in (Duration.PREFILL, Duration.INFERENCE):
        if duration not in found:
            continue
        whole = found.pop(duration)
        if queue is None:
            doubts.say(
                f"{duration} is not used: {dialect.writer} counts the queue into it, and that is unknown"
            )
        elif whole < queue:
            doubts.say(
                f"{duration} is refused: it is shorter than the queue that {dialect.writer} counts into it"
            )
        else:
            found[duration] = whole - queue


def _complete(found: Durations) -> None:
    """Of prefill, decode and both together, two give the third."""
    if (both := found.get(Duration.INFERENCE)) is None:
        return
    prefill, decode = found.get(Duration.PREFILL), found.get(Duration.DECODE)
    if prefill is None and decode is not None and both >= decode:
        found[Duration.PREFILL] = both - decode
    elif decode is None and prefill is not None and both >= prefill:
        found[Duration.DECODE] = both - prefill


def _first(attributes: Attributes, places: tuple[In, ...]) -> float | None:
    for place in places:
        value = attributes.get(place.key)
        if type(value) is float:
            return value * place.unit
        if value is not None and (ns := nanoseconds(value, place.unit)) is not None:
            return ns
    return None


def nanoseconds(value: Any, unit: int) -> float | None:
    """A duration: a number in the unit, or a text that may name its own, as Rust's `12.3ms`."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return None
        return float(match[1]) * (_SUFFIXES[match[2]] if match[2] else unit)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) * unit
    except OverflowError:
        return math.nan


def is_finite(value: Any) -> bool:
    """Whether it is a number that a float holds: a document may hold an integer of any length."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _whole(value: Any) -> int | None:
    """A number of tokens, also where it was written as text or as a float."""
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        value = float(match[1]) if match is not None and not match[2] else None
    if not is_finite(value):
        return None
    return int(value) if value == int(value) else None
