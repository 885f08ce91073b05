"""What is asked of a server: `http://HOST:PORT/?service=NAME&since=1h&limit=100`, a trace, or a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

from phasetrace.errors import UsageError

SCHEMES = ("http://", "https://")
OPTIONS = ("service", "since", "until", "limit")
LIMIT, MOST = 100, 10_000  # traces
SINCE = "1h"
_SECOND = 10**9
_UNITS = {"s": _SECOND, "m": 60 * _SECOND, "h": 3600 * _SECOND, "d": 86_400 * _SECOND}
_AGO = re.compile(r"(\d{1,6})([smhd])", re.ASCII)
_ONE_TRACE = re.compile(r"(?P<base>.*)/(?P<how>trace|(?:api/(?:v[23]/)?)traces)/(?P<id>[0-9a-fA-F]{1,32})/?")


_FILE = re.compile(r".*\.(?:json|jsonl|ndjson|pb|binpb|otlp)(?:\.gz|\.zst)?")


@dataclass(frozen=True, slots=True)
class Question:
    """The traces that are wanted. Times are nanoseconds since the epoch."""

    base: str  # scheme, host and path in front of `/api`
    service: str | None
    begin_ns: int
    end_ns: int
    limit: int  # traces
    document: str | None = None  # the one that is wanted, instead of all that


def is_address(source: str) -> bool:
    """Whether a source is a server and not a file."""
    return source.startswith(SCHEMES)


def asked(address: str, options: Mapping[str, str | int | None]) -> str:
    """The address with options in its query, where they were given."""
    given = {name: str(value) for name, value in options.items() if value is not None}
    if not given:
        return address
    parts = urlsplit(address)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in given]
    return parts._replace(query=urlencode([*kept, *given.items()])).geturl()


def question(address: str, now_ns: int) -> Question:
    """What an address asks for.

    Raises:
        UsageError: something in it is not understood.
    """
    parts = _split(address)
    given = dict(parse_qsl(parts.query))
    base = f"{parts.scheme}://{parts.netloc}"
    path = parts.path.rstrip("/")
    one = _ONE_TRACE.fullmatch(path)
    document = None
    if _FILE.fullmatch(path):
        document = parts._replace(
            scheme="", netloc="", fragment=""
        ).geturl()  # with its query: it may be signed
        return Question(base, None, 0, now_ns, LIMIT, document)
    if one is not None:
        path = one["base"]
        how = "api/traces" if one["how"] == "trace" else one["how"]  # the page of Jaeger's interface
        document = f"/{how}/{one['id']}"
    else:
        unknown = sorted(set(given) - set(OPTIONS))
        if unknown:
            raise UsageError(f"{unknown[0]!r} is not asked of a server; {', '.join(OPTIONS)} are")
    begin, end = _moment(given.get("since", SINCE), now_ns), _moment(given.get("until", "0s"), now_ns)
    if begin >= end:
        raise UsageError("`since` is not before `until`")
    return Question(base + path, given.get("service"), begin, end, _limit(given.get("limit")), document)


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises where it is no number
    except ValueError as error:
        raise UsageError(f"{address.split('?')[0]} is no address: {error}") from None
    if not parts.hostname:
        raise UsageError(f"{address.split('?')[0]} names no host")
    if parts.username is not None or parts.password is not None:
        raise UsageError("others can see a password in an address; put a header into PHASETRACE_HEADERS")
    return parts


def _moment(text: str, now_ns: int) -> int:
    """`15m` ago, or a date and time by ISO 8601; in UTC where it names no zone."""
    if (ago := _AGO.fullmatch(text)) is not None:
        return now_ns - int(ago[1]) * _UNITS[ago[2]]
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time; give 15m, 2h, 3d or 2026-01-31T12:00") from None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1e6) * 1000


def _limit(text: str | None) -> int:
    if text is None:
        return LIMIT
    if not text.isascii() or not text.isdecimal() or not 0 < len(text) < 10 or not 0 < int(text) <= MOST:
        raise UsageError(f"{text!r} is no limit; give a number of traces from 1 to {MOST:,}")
    return int(text)
