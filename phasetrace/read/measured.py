"""A span's numbers, less those that cannot be true, and with those that the rest determines."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any

from phasetrace.mapping import Kind
from phasetrace.read.dialects.dialect import Count, Dialect, Duration, Written
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


@dataclass(slots=True)
class Durations:
    """The members of `Duration`, in ns; None where unknown."""

    frontend: int | None = None
    queue: int | None = None
    ttft: int | None = None
    prefill: int | None = None
    decode: int | None = None
    inference: int | None = None
    e2e: int | None = None
    tpot: int | None = None


@dataclass(slots=True)
class Counts:
    """The members of `Count`; None where unknown."""

    prompt: int | None = None
    output: int | None = None
    cached: int | None = None
    max_tokens: int | None = None
    sequences: int | None = None


_FIELDS = {member: member.name.lower() for member in (*Duration, *Count)}
_LEAST = {count: 1 if count is Count.PROMPT else 0 for count in Count}


def durations(written: Written, dialect: Dialect, doubts: Doubts) -> Durations:
    """What the dialect's keys hold."""
    untrusted = dialect.doubts(written) if dialect.doubts is not None else {}
    found = Durations()
    attributes = written.span.attributes
    for duration, places in dialect.durations.items():
        ns = None
        for place in places:
            if (value := attributes.get(place.key)) is not None:
                ns = value * place.unit if type(value) is float else nanoseconds(value, place.unit)
                if ns is not None:
                    break
        if ns is None:
            continue
        if 0 <= ns <= _LONGEST_NS and not untrusted:
            setattr(found, _FIELDS[duration], round(ns))
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
            setattr(found, _FIELDS[duration], round(ns))
    if dialect.prefill_holds_queue:
        _take_queue_out(found, dialect, doubts)
    _complete(found)
    return found


def in_seconds(found: Durations, length: int, doubts: Doubts) -> None:
    """Repair durations in another unit than their keys say, which the span's length tells."""
    if not found.e2e or length <= 0:
        return
    apart = found.e2e / length
    for times, unit in _OTHER_UNITS.items():
        if abs(apart - times) <= _UNIT_APART * times:
            doubts.say(f"durations are {times:,} times the span's length, so they are in {unit}: read so")
            for field in fields(found):
                if (ns := getattr(found, field.name)) is not None:
                    setattr(found, field.name, round(ns / times))
            return


def counts(written: Written, dialect: Dialect, doubts: Doubts) -> Counts:
    """What the dialect's keys count."""
    untrusted = dialect.doubts(written) if dialect.doubts is not None else {}
    attributes = written.span.attributes
    found = Counts()
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
        elif number is None or not _LEAST[count] <= number < _MOST_TOKENS:
            doubts.say(f"{count} are refused: impossible")
        else:
            setattr(found, _FIELDS[count], number)
    return found


def distrust(found: Durations, e2e: int, output: int | None, doubts: Doubts) -> None:
    """Take out what contradicts the whole, and fill in what the whole determines."""
    if output == 0 and found.decode:
        doubts.say("there are no output tokens, and yet there was decode: one of the two is wrong")
    ttft = found.ttft
    if ttft is not None and output != 1 and found.decode is None and 0 <= e2e - ttft <= WHOLE * e2e:
        doubts.say("time to first token is refused: it equals the duration, so it was not measured")
        ttft = found.ttft = found.tpot = None
    each = found.tpot
    if output is None or output < 2 or each is None:
        return
    if each == 0:
        doubts.say("time per output token is refused: it is zero")
    elif ttft is None and (first := e2e - each * (output - 1)) > 0:
        found.ttft = first
    elif ttft is not None and abs((e2e - ttft) / (output - 1) - each) > CONTRADICTS * each:
        if (e2e - ttft) / (output - 1) < each:
            doubts.say("time per output token is a chunk's, and chunks hold several tokens: not used")
        else:
            doubts.say("time per output token contradicts e2e, time to first token and tokens: not used")


def _take_queue_out(found: Durations, dialect: Dialect, doubts: Doubts) -> None:
    """Give a prefill that begins at the queue the meaning it has elsewhere."""
    for duration in (Duration.PREFILL, Duration.INFERENCE):
        name = _FIELDS[duration]
        if (whole := getattr(found, name)) is None:
            continue
        setattr(found, name, None)
        if found.queue is None:
            doubts.say(
                f"{duration} is not used: {dialect.writer} counts the queue into it, and that is unknown"
            )
        elif whole < found.queue:
            doubts.say(
                f"{duration} is refused: it is shorter than the queue that {dialect.writer} counts into it"
            )
        else:
            setattr(found, name, whole - found.queue)


def _complete(found: Durations) -> None:
    """Of prefill, decode and both together, two give the third."""
    both, prefill, decode = found.inference, found.prefill, found.decode
    if both is None:
        return
    if prefill is None and decode is not None and both >= decode:
        found.prefill = both - decode
    elif decode is None and prefill is not None and both >= prefill:
        found.decode = both - prefill


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
