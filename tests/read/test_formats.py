"""One trace in every format gives the same requests, whatever it is packed in and however it is cut."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from phasetrace.errors import PhasetraceError, TraceFormatError
from phasetrace.model import Recording, Request, RequestStatus
from phasetrace.read import read
from tests.read import writers

MADE = writers.spans()


def lines(*documents: Any) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


FORMATS: dict[str, Callable[[], bytes]] = {
    "OTLP JSON, one document": lambda: json.dumps(writers.otlp(MADE)).encode(),
    "OTLP JSON, pretty": lambda: json.dumps(writers.otlp(MADE), indent=2).encode(),
    "OTLP JSON, ids in capitals": lambda: lines(writers.otlp(MADE, upper=True)),
    "OTLP JSON lines": lambda: lines(*(writers.otlp([span]) for span in MADE)),
    "OTLP JSON, array": lambda: lines([writers.otlp([span]) for span in MADE]),
    "OTLP JSON, Java's bare resources": lambda: lines(
        *(resource for span in MADE for resource in writers.otlp([span])["resourceSpans"])
    ),
    "OTLP JSON, instrumentationLibrarySpans": lambda: lines(writers.old(MADE)),
    "OTLP protobuf": lambda: writers.protobuf(MADE),
    "OTLP protobuf, bodies appended": lambda: b"".join(writers.protobuf([span]) for span in MADE),
    "OTLP protobuf, length-prefixed": lambda: writers.framed(MADE),
    "Jaeger": lambda: json.dumps(writers.jaeger(MADE)).encode(),
    "Jaeger, pretty": lambda: json.dumps(writers.jaeger(MADE), indent=4).encode(),
    "Jaeger API v3": lambda: lines({"result": writers.otlp(MADE)}),
    "Tempo v1": lambda: lines({"batches": writers.by_the_book(MADE)["resourceSpans"]}),
    "Tempo v2": lambda: lines({"trace": writers.by_the_book(MADE), "metrics": {}}),
    "Grafana export": lambda: json.dumps({"batches": writers.otlp(MADE)["resourceSpans"]}, indent=1).encode(),
    "Zipkin": lambda: lines(writers.zipkin(MADE)),
    "Zipkin, several traces": lambda: lines([writers.zipkin(MADE)]),
    "Zipkin, pretty": lambda: json.dumps(writers.zipkin(MADE), indent=2).encode(),
    "console exporter": lambda: writers.console(MADE).encode(),
    "bare spans": lambda: json.dumps(writers.bare(MADE), indent=1).encode(),
    "array of spans": lambda: json.dumps(writers.bare(MADE)["spans"]).encode(),
    "JSON lines of spans": lambda: lines(*writers.bare(MADE)["spans"]),
}


def zstd_frames(data: bytes) -> bytes:
    """As the Collector's older compression: each message a frame of its own behind its length."""
    messages = data.splitlines() if data.startswith(b"{") else [data]
    frames = [zstandard.compress(message) for message in messages]
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


def told(found: Recording) -> list[tuple[Any, ...]]:
    """What a request is, less what not every format says."""
    return [
        (
            r.span_id,
            r.parent_span_id,
            r.engine,
            r.external_id,
            r.arrival_ns,
            r.received_ns,
            r.scheduled_ns,
            r.first_token_ns,
            r.last_token_ns,
            r.finished_ns,
            r.status,
            r.prompt_tokens,
            r.output_tokens,
            r.finish_reason,
            sorted(r.derived),
        )
        for r in sorted(found.requests, key=lambda r: r.arrival_ns)
    ]


def expected() -> list[tuple[Any, ...]]:
    found = []
    for number, span in enumerate(s for s in MADE if s.name == "llm_request"):
        begin = span.start_time
        received, scheduled = begin + 125 * writers.MS, begin + 250 * writers.MS
        found.append(
            (
                writers.span_id(span),
                f"{span.parent.span_id:016x}",
                "vllm",
                "cmpl-1",
                begin,
                received,
                scheduled,
                begin + 500 * writers.MS,
                begin + 1750 * writers.MS,
                begin + 2000 * writers.MS,
                RequestStatus.FAILED if number == 2 else RequestStatus.OK,
                2998,
                56,
                "stop",
                ["first_token_ns", "last_token_ns", "received_ns", "scheduled_ns"],
            )
        )
    return found


def read_bytes(path: Path, content: bytes) -> Recording:
    path.write_bytes(content)
    return read(path)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_requests(name: str, tmp_path: Path) -> None:
    assert told(read_bytes(tmp_path / "input", FORMATS[name]())) == expected()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_packed(name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    assert told(read_bytes(tmp_path / "input", pack(FORMATS[name]()))) == expected()


@pytest.mark.parametrize("name", ["OTLP JSON lines", "OTLP protobuf"])
def test_packed_a_message_at_a_time(name: str, tmp_path: Path) -> None:
    assert told(read_bytes(tmp_path / "input", zstd_frames(FORMATS[name]()))) == expected()


def test_protobuf_in_frames_of_zstd_may_be_many(tmp_path: Path) -> None:
    content = b"".join(zstd_frames(writers.protobuf([span])) for span in MADE)
    assert told(read_bytes(tmp_path / "input", content)) == expected()


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_cut_gives_what_is_whole_and_says_so(name: str, tmp_path: Path) -> None:
    content = FORMATS[name]()
    for part in (0.95, 0.8, 0.5):
        try:
            found = read_bytes(tmp_path / "input", content[: int(len(content) * part)])
        except PhasetraceError as error:
            assert "\n" not in str(error)
            continue
        assert len(found.requests) <= 3
        assert any("cut off" in d.defect or "damaged" in d.defect for d in found.defects)
        assert not any("are not JSON" in d.defect for d in found.defects)
        assert [r for r in told(found) if r not in expected()] == []  # half a request is none


def test_pieces_of_a_cut_document_are_not_lost(tmp_path: Path) -> None:
    for name in ("Jaeger", "OTLP JSON, pretty", "Zipkin", "OTLP protobuf", "OTLP protobuf, length-prefixed"):
        content = FORMATS[name]()
        found = read_bytes(tmp_path / "input", content[: int(len(content) * 0.6)])
        assert found.requests, name


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (1_700_000_000, 1_700_000_000 * 10**9),
        (1_700_000_000_123, 1_700_000_000_123 * 10**6),
        (1_700_000_000_123_456, 1_700_000_000_123_456 * 10**3),
        ("1700000000123456789", 1_700_000_000_123_456_789),
        ([1_700_000_000, 5], 1_700_000_000_000_000_005),
        ({"high": 395812096, "low": -5}, 395812096 * 2**32 + 2**32 - 5),
        ("2023-11-14T22:13:20.5Z", 1_700_000_000_500_000_000),
        ("2023-11-14 22:13:20.5", 1_700_000_000_500_000_000),
    ],
)
def test_the_unit_of_a_time_is_told_by_its_size(value: Any, ns: int, tmp_path: Path) -> None:
    document = writers.bare(MADE)
    document["spans"][0] |= {"startTime": value, "endTime": value}
    requests = read_bytes(tmp_path / "i", lines(document)).requests
    assert next(r for r in requests if r.span_id == document["spans"][0]["spanId"]).arrival_ns == ns


def test_ids_of_64_bits_are_filled_up(tmp_path: Path) -> None:
    document = writers.jaeger(MADE)
    for span in document["data"][0]["spans"]:
        span["traceID"] = "abcdef0123456789"
        span["references"] = []
    found = read_bytes(tmp_path / "i", lines(document))
    assert {r.trace_id for r in found.requests} == {"0" * 16 + "abcdef0123456789"}


def test_a_partial_trace_of_tempo_is_said(tmp_path: Path) -> None:
    document = {"trace": writers.by_the_book(MADE), "status": "PARTIAL", "message": "too large"}
    found = read_bytes(tmp_path / "i", lines(document))
    assert any("too large" in d.defect for d in found.defects)


def test_what_jaeger_warns_of_is_said(tmp_path: Path) -> None:
    document = writers.jaeger(MADE)
    document["data"][0]["warnings"] = ["trace has more than 3 spans, showing first 3 spans only"]
    document["data"][0]["spans"][0]["warnings"] = ["clock skew adjustment disabled"]
    said = " ".join(d.defect for d in read_bytes(tmp_path / "i", lines(document)).defects)
    assert "more than 3 spans" in said and "raw=true" in said


def test_a_span_without_a_time_is_said(tmp_path: Path) -> None:
    document = writers.zipkin(MADE)
    del document[0]["timestamp"]
    found = read_bytes(tmp_path / "i", lines(document))
    assert len(found.requests) == 2 and any("no time" in d.defect for d in found.defects)


def test_nan_and_control_characters_are_understood(tmp_path: Path) -> None:
    content = FORMATS["bare spans"]().replace(b'"gen_ai.request.temperature": 1.0', b'"x": NaN')
    assert len(read_bytes(tmp_path / "i", content.replace(b"vllm", b"v\x01m")).requests) == 3


BOMBS: dict[str, Callable[[], bytes]] = {
    "zeros in zstd": lambda: zstandard.compress(b'{"resourceSpans":[' + bytes(200 << 20)),
    "50 GB in zstd": lambda: zstandard.compress(b'{"resourceSpans":[' + bytes(64 << 20)) * 800,
    "zeros in gzip": lambda: gzip.compress(b'{"resourceSpans":[' + bytes(200 << 20), 9),
    "lines in zstd": lambda: zstandard.compress(b'{"resourceSpans":[]}\n' * (5 << 20)),
    "a million arrays": lambda: b'{"resourceSpans":' + b"[" * 1_000_000,
    "a million closed arrays": lambda: b'{"spans":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}",
    "a frame of zstd": lambda: zstd_frames(b'{"resourceSpans":["' + b"x" * (100 << 20) + b'"]}'),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name]())
    with pytest.raises(PhasetraceError) as caught:
        read(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_a_message_that_claims_to_be_endless_is_refused(tmp_path: Path) -> None:
    for content in (b"\xff\xff\xff\xff\x0a\x02\x0a\x00", b"\x0a\xff\xff\xff\xff\x7f\x0a\x00"):
        with pytest.raises(TraceFormatError):
            read_bytes(tmp_path / "i", content)


@pytest.mark.parametrize(
    "begin",
    [
        b'{"data":[{"traceID":"a","spans":[{"x":"',
        b'{"resourceSpans":[{"x":"',
        b'{\n"resourceSpans":[{"x":"',
        b'[{"traceId":"1","id":"2","x":"',
    ],
)
def test_a_string_of_two_gigabytes_is_refused(
    begin: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit that a test can afford; the file is sparse, so that it takes no room."""
    from phasetrace.read import json_text, source

    limit = 32 << 20
    for module in (source, json_text):
        monkeypatch.setattr(module, "LONGEST", limit)
    path = tmp_path / "i"
    with open(path, "wb") as file:
        file.write(begin)
        file.truncate(2 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(TraceFormatError, match="more than phasetrace reads at once"):
            read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.25 * limit + (4 << 20)  # what is read grows by an eighth at a time, and buffers


def test_requests_are_equal_whatever_the_order(tmp_path: Path) -> None:
    found: list[list[Request]] = []
    for made in (MADE, list(reversed(MADE))):
        recorded = read_bytes(tmp_path / "i", writers.protobuf(made))
        found.append(sorted(recorded.requests, key=lambda r: r.arrival_ns))
    assert found[0] == found[1]
