"""The one table of trace formats: how each is recognised, and who reads it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from phasetrace.errors import TraceFormatError
from phasetrace.model import Recording
from phasetrace.read.otlp_json import read_otlp_json
from phasetrace.read.source import Source

Reader = Callable[[Source], Recording]


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and what the beginning of its files matches; without a reader it is only known by name."""

    name: str
    begin: re.Pattern[bytes]
    reader: Reader | None = None


def _pattern(regex: bytes) -> re.Pattern[bytes]:
    return re.compile(regex, re.DOTALL)


# Looked through in order, on the first 64 KiB after gunzip.
FORMATS = (
    Format("Zstandard-compressed", _pattern(rb"(?:.{4})?\x28\xb5\x2f\xfd")),
    Format("Parquet", _pattern(rb"PAR1")),
    Format("OTLP protobuf", _pattern(rb"(?:\x00.{3})?\x0a[^\s\"{\[]")),
    Format("OTLP JSON", _pattern(rb'\s*[\[{].*?"(?:resourceSpans|scopeSpans)"'), read_otlp_json),
    Format("Tempo JSON", _pattern(rb'\s*\{\s*"batches"\s*:')),
    Format("Jaeger JSON", _pattern(rb'\s*\{\s*"data"\s*:.*?"spans"')),
    Format("Chrome trace JSON", _pattern(rb'\s*[\[{].*?"(?:traceEvents|ph)"\s*:')),
    Format("Zipkin JSON", _pattern(rb'\s*\[.*?"traceId"')),
    Format("console exporter JSON", _pattern(rb'\s*\{.*?"trace_id"\s*:')),
)
READABLE = " and ".join(f.name for f in FORMATS if f.reader is not None)


def sniff(source: Source) -> Reader:
    """Who can read this.

    Raises:
        TraceFormatError: nobody can; says what it is instead, where that can be told.
    """
    head = source.head().removeprefix(b"\xef\xbb\xbf")
    if not head.strip():
        raise TraceFormatError(
            f"{source.name} is empty; a run writes into it when its first request has ended"
        )
    for known in FORMATS:
        if known.begin.match(head):
            if known.reader is not None:
                return known.reader
            raise TraceFormatError(
                f"{source.name} is {known.name}, which phasetrace cannot read; give it {READABLE}"
            )
    raise TraceFormatError(f"{source.name} {_what_it_is(head)}; give phasetrace {READABLE}")


def _what_it_is(head: bytes) -> str:
    if b"\0" in head:
        return "is binary, not a trace"
    if head.lstrip()[:1] in (b"{", b"["):
        return "is JSON without spans"
    return "is not JSON"
