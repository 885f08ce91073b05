"""Ids and times as the formats write them. What they are is told by their length and by their size."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from datetime import datetime
from typing import Any

TRACE, SPAN = 32, 16  # hex digits
LATEST_NS = 1 << 62  # in the year 2116; differences and sums of two stay in 64 bits
_HEX = re.compile(r"[0-9a-f]+", re.ASCII)
_is_trace, _is_span = (re.compile(f"[0-9a-f]{{{digits}}}", re.ASCII).fullmatch for digits in (TRACE, SPAN))
_BASE64 = {24: TRACE, 22: TRACE, 12: SPAN, 11: SPAN}  # characters -> digits
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
# A time since the epoch in a unit is a number of that size between the years 2001 and 2100.
_UNITS = ((10**18, 1), (10**15, 10**3), (10**12, 10**6), (10**9, 10**9))


def trace_id(value: Any) -> str:
    """32 hex digits, in lower case; ValueError where it is no id."""
    if type(value) is str and _is_trace(value):
        return value
    return _ident(value, TRACE)


def span_id(value: Any) -> str:
    """16 hex digits, in lower case; ValueError where it is no id."""
    if type(value) is str and _is_span(value):
        return value
    return _ident(value, SPAN)


def _ident(value: Any, digits: int) -> str:
    text = str(value).lower() if isinstance(value, (str, int)) else ""
    if len(text) == digits and _HEX.fullmatch(text):
        return text
    if _BASE64.get(len(text)) == digits:  # Tempo's, as of any protobuf that is printed by the book
        try:
            decoded = b64decode(str(value) + "=" * (-len(text) % 4), validate=True).hex()
        except (Error, ValueError):
            decoded = ""
        if len(decoded) == digits:
            return decoded
    text = text.removeprefix("0x")  # as Python's console exporter prints them
    if 0 < len(text) <= digits and _HEX.fullmatch(text):
        return text.zfill(digits)  # 64 bits of a trace, or printed without leading zeros
    raise ValueError("no id")


def parent_id(value: Any) -> str | None:
    """A parent's span id; None where there is none."""
    if value in (None, "", "null"):
        return None
    return span_id(value)


def nanoseconds(value: Any) -> int:
    """A time that is given in nanoseconds since the epoch; ValueError where it is impossible."""
    if isinstance(value, dict):  # a 64-bit number of JavaScript
        value = int(value["high"]) * 2**32 + (int(value["low"]) & 0xFFFFFFFF)
    return _possible(int(value))


def microseconds(value: Any) -> int:
    """A time or a duration in microseconds, in nanoseconds."""
    return _possible(round(float(value) * 1000) if isinstance(value, float) else int(value) * 1000)


def moment(value: Any) -> int:
    """A time in whatever form: ISO 8601, or a number since the epoch whose size tells its unit."""
    if isinstance(value, (list, tuple)) and len(value) == 2:  # seconds and nanoseconds
        return _possible(int(value[0]) * 10**9 + int(value[1]))
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        return _possible(_iso(value))
    if isinstance(value, dict):
        return nanoseconds(value)
    number = float(value)
    for size, unit in _UNITS:
        if number >= size:
            exact = isinstance(value, int) or (isinstance(value, str) and value.isdigit())
            return _possible(int(value) * unit if exact else round(number * unit))
    raise ValueError("no time")


def _iso(text: str) -> int:
    """To the microsecond, which is as far as these writers go; without a zone it is UTC."""
    found = datetime.fromisoformat(text.strip())
    if found.tzinfo is None:
        found = found.replace(tzinfo=_EPOCH.tzinfo)
    since = found - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def _possible(ns: int) -> int:
    if not 0 <= ns < LATEST_NS:
        raise ValueError("an impossible time")
    return ns
