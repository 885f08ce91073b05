"""Files as people and their tools leave them: one after another, in other encodings, or no traces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opentelemetry.sdk.trace import ReadableSpan

from phasetrace.errors import TraceFormatError
from tests.read import test_engine_config, writers
from tests.read.test_formats import MADE, expected, lines, read_bytes, told

OTLP = [writers.otlp([span]) for span in MADE]
OTHER_SIGNALS = lines({"resourceMetrics": [{}]}, {"resourceLogs": [{}]}) * 4_000  # more than is looked at
AS_PEOPLE_LEAVE_THEM: dict[str, bytes] = {
    "by cat, without an end of line": b"".join(json.dumps(body).encode() for body in OTLP),
    "by jq, over several lines": b"".join(json.dumps(body, indent=2).encode() + b"\n" for body in OTLP),
    "by jq in one line": json.dumps(OTLP[0]).encode() + b" " + lines(*OTLP[1:]),
    "by a Collector, behind other signals": OTHER_SIGNALS + lines(*OTLP),
    "by Windows": lines(*OTLP).replace(b"\n", b"\r\n"),
    "in UTF-16": lines(*OTLP).decode().encode("utf-16"),
    "in UTF-16, the other way round": b"\xfe\xff" + lines(*OTLP).decode().encode("utf-16-be"),
    "in UTF-32": lines(*OTLP).decode().encode("utf-32"),
    "with a byte order mark": b"\xef\xbb\xbf" + lines(*OTLP),
    "in members of gzip": b"".join(gzip.compress(json.dumps(body).encode()) for body in OTLP),
    "in UTF-16 in gzip": gzip.compress(lines(*OTLP).decode().encode("utf-16")),
}


WHOLES: dict[str, Callable[[Sequence[ReadableSpan]], Any]] = {
    "Jaeger": writers.jaeger,
    "Zipkin": writers.zipkin,
    "Zipkin, traces": lambda made: [writers.zipkin(made)],
    "bare spans": writers.bare,
    "an array of spans": lambda made: writers.bare(made)["spans"],
}


@pytest.mark.parametrize("name", WHOLES)
@pytest.mark.parametrize(("indent", "between"), [(None, ""), (None, "\n"), (1, "\n"), (1, "")])
def test_documents_of_any_format_one_after_another(
    name: str, indent: int | None, between: str, tmp_path: Path
) -> None:
    texts = [json.dumps(WHOLES[name]([span]), indent=indent) for span in MADE]
    assert told(read_bytes(tmp_path / "input", between.join(texts).encode())) == expected()


@pytest.mark.parametrize("name", WHOLES)
def test_the_last_of_them_may_be_cut(name: str, tmp_path: Path) -> None:
    texts = [json.dumps(WHOLES[name](MADE)) for _ in range(2)]
    found = read_bytes(tmp_path / "input", "".join(texts)[:-20].encode())
    assert told(found) == expected() and any("cut off" in d.defect for d in found.defects)


@pytest.mark.parametrize("how", AS_PEOPLE_LEAVE_THEM)
def test_as_people_leave_them(how: str, tmp_path: Path) -> None:
    assert told(read_bytes(tmp_path / "input", AS_PEOPLE_LEAVE_THEM[how])) == expected()


def test_of_documents_one_after_another_the_last_may_be_cut(tmp_path: Path) -> None:
    content = AS_PEOPLE_LEAVE_THEM["by jq, over several lines"] * 2
    found = read_bytes(tmp_path / "input", content[:-200])
    assert told(found) == expected() and any("cut off" in d.defect for d in found.defects)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (gzip.compress(zstandard.compress(lines(*OTLP))), "packed twice"),
        (b"PK\x03\x04 and more", "a zip archive"),
        (b"BZh91AY&SY", "packed with bzip2"),
        (b"\xfd7zXZ\x00", "packed with xz"),
        (b"\x04\x22\x4d\x18", "packed with lz4"),
        (b"trace.json".ljust(257, b"\0") + b"ustar\0", "a tar archive"),
        (b"SQLite format 3\0", "a database of SQLite"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS"),
        (test_engine_config.LOG.encode(), "the log of a vLLM server: name it as --engine-config"),
        (b"\n<!DOCTYPE html><title>Sign in</title>", "HTML"),
    ],
)
def test_what_is_no_trace_is_called_what_it_is(content: bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match=f" is {what}"):
        read_bytes(tmp_path / "input", content)


def test_spans_on_a_console_may_come_after_much_else(tmp_path: Path) -> None:
    content = b"INFO {loading}\n" * 10_000 + writers.console(MADE).encode()
    assert told(read_bytes(tmp_path / "input", content)) == expected()


def test_a_long_text_without_a_span_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="no line of it begins a span"):
        read_bytes(tmp_path / "input", b"INFO {loading}\n" * 10_000)
