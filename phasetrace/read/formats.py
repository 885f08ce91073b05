"""The one table of trace formats: how each is recognised by its content, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from phasetrace.errors import TraceFormatError
from phasetrace.mapping import ResourceSpans
from phasetrace.read import jaeger, otlp_json, otlp_proto, plain_spans, records, stores, triton, zipkin
from phasetrace.read.notes import Notes
from phasetrace.read.outline import outline
from phasetrace.read.source import HEAD, Source
from phasetrace.read.unpack import GZIP, ZSTD
from phasetrace.read.vllm_log import is_vllm_log

Reader = Callable[[Source, Notes], Iterator[ResourceSpans]]
Recognise = Callable[[bytes, frozenset[str]], bool]  # the first bytes, and their outline where they are JSON


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and how it is told; without a reader it is only known by name."""

    name: str
    recognise: Recognise
    reader: Reader | None = None


def _starts(magic: bytes) -> Recognise:
    return lambda head, _: head.startswith(magic)


def _has(*paths: str) -> Recognise:
    """One of these keys is there, at the top or in the elements of an array at the top."""
    known = {wrapped for path in paths for wrapped in (path, f"[].{path}")}
    return lambda _, keys: not known.isdisjoint(keys)


def _zipkin(_: bytes, keys: frozenset[str]) -> bool:
    return any({f"{at}traceId", f"{at}id"} <= keys for at in ("", "[].", "[][]."))


def _array_of_spans(_: bytes, keys: frozenset[str]) -> bool:
    return bool({"[].context.trace_id", "[].trace_id", "[].traceId"} & keys)


def _among_lines(head: bytes, keys: frozenset[str]) -> bool:
    return (b'"trace_id"' in head and b'"start_time"' in head) or {"traceId", "name"} <= keys


def _long_text(head: bytes, keys: frozenset[str]) -> bool:
    """A program's output, of which spans may be a later part."""
    return len(head) >= HEAD and not keys and b"\n" in head and _what_it_is(head) == _NO_JSON


def _wrapped(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, *(f"{outer}.{name}" for outer in ("result", "trace") for name in names))


_SIGNALS = ("resourceMetrics", "resourceLogs", "resourceProfiles")  # a Collector's file may hold them first
_RECORDS = (
    *(f"timings.{key}" for key in ("prompt_ms", "predicted_ms")),
    *(f"{at}timing_metrics.arrival_time" for at in ("", "perf_metrics.")),
    *(f"{at}meta_info.e2e_latency" for at in ("", "choices[].")),
    *(f"{at}request.request_id" for at in ("", "event.")),
    *(f"metrics.first_token_{ending}" for ending in ("time", "ts")),
)

_STORED = (
    *("data[].context.trace_id", "data[].trace_id"),  # Phoenix
    *(f"trace.{key}" for key in ("trace_info", "spans")),  # MLflow
    *(f"data.spans[].{key}" for key in ("trace_id", "attributes")),
)

# Looked through in order, on the first 64 KiB after unpacking. Protobuf may begin like a newline, so it is
# told by its structure and comes before the texts.
FORMATS = (
    Format("Parquet", _starts(b"PAR1")),
    Format("OTLP protobuf", lambda head, _: otlp_proto.is_plain(head), otlp_proto.plain),
    Format("OTLP protobuf", lambda head, _: otlp_proto.is_framed(head), otlp_proto.framed),
    Format(
        "OTLP JSON",
        _has(*_wrapped((*otlp_json.RESOURCES, *otlp_json.SCOPES)), *_SIGNALS),
        otlp_json.otlp_json,
    ),
    Format("Jaeger JSON", _has("data[].spans", "data[].traceID"), jaeger.jaeger),
    Format("Phoenix or MLflow JSON", _has(*_STORED), stores.stored),
    Format("Triton's trace file", _has("timestamps[].ns"), triton.triton_file),
    Format("Chrome trace JSON", _has("traceEvents", "ph")),
    Format("Zipkin JSON", _zipkin, zipkin.zipkin),
    Format("records of requests", _has(*_RECORDS), records.records),
    Format("spans as JSON", _has("spans[].name", "spans[].context"), plain_spans.bare_spans),
    Format("an array of spans", _array_of_spans, plain_spans.bare_spans),
    Format("console exporter output", _among_lines, plain_spans.console),
    Format("text", _long_text, plain_spans.console),
)
_NO_JSON = "is not JSON"
_TAR = 257  # where its magic number is
_MAGICS = {
    GZIP: "packed twice: unpack it once",
    ZSTD: "packed twice: unpack it once",
    b"PK\x03\x04": "a zip archive: unpack it",
    b"BZh": "packed with bzip2: unpack it",
    b"\xfd7zXZ": "packed with xz: unpack it",
    b"\x04\x22\x4d\x18": "packed with lz4: unpack it",
    b"SQLite format 3": "a database of SQLite, not a trace",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself: fetch it with `git lfs pull`",
    b"<": "HTML or XML, not a trace",
}
READABLE = "OTLP (JSON or protobuf), Jaeger, Tempo or Zipkin JSON, console output, or records of requests"


def sniff(source: Source) -> Reader:
    """Who can read this.

    Raises:
        TraceFormatError: nobody can; says what it is instead, where that can be told.
    """
    head = source.head()
    if not head.strip():
        raise TraceFormatError(
            f"{source.name} is empty; a run writes into it when its first request has ended"
        )
    keys = outline(head)
    for known in FORMATS:
        if known.recognise(head, keys):
            if known.reader is not None:
                return known.reader
            raise TraceFormatError(
                f"{source.name} is {known.name}, which phasetrace cannot read; give it {READABLE}"
            )
    raise TraceFormatError(f"{source.name} {_what_it_is(head)}; give phasetrace {READABLE}")


def _what_it_is(head: bytes) -> str:
    for magic, what in _MAGICS.items():
        if head.lstrip().startswith(magic):
            return f"is {what}"
    if head[_TAR : _TAR + 5] == b"ustar":
        return "is a tar archive: unpack it"
    if b"\0" in head:
        return "is binary, not a trace"
    if head.lstrip()[:1] in (b"{", b"["):
        return "is JSON without spans"
    if is_vllm_log(head.decode("utf-8", "replace")):
        return "is the log of a vLLM server: name it as --engine-config, beside a trace"
    return _NO_JSON
