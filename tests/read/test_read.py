"""Whatever the user names is read, or refused in one line that says what to do."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from phasetrace.emit.otlp_json import to_lines
from phasetrace.emit.trace_file import TraceFile
from phasetrace.errors import NothingRecordedError, PhasetraceError, TraceFormatError, UsageError
from phasetrace.mapping import to_spans
from phasetrace.model import Recording
from phasetrace.read import json_text, read, source
from tests.builders import generation, plain, recording
from tests.mapping.strategies import recordings


def written(path: Path, *parts: Recording) -> Path:
    with TraceFile(path) as file:
        for part in parts:
            file.write(part)
    return path


def body(recorded: Recording) -> bytes:
    return b"".join(to_lines(to_spans(recorded)))


@given(recorded=recordings())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_loses_nothing(recorded: Recording, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(body(recorded))
    assert plain(read(path)) == plain(recorded)


def test_parts_make_one_recording(tmp_path: Path) -> None:
    first, second = generation(), generation(name="r2", stream=2)
    read_back = read(written(tmp_path / "t.json", first, second))
    assert [r.id for r in read_back.requests] == ["r1", "r2"]
    assert len(read_back.steps) == 2 and len(read_back.processes) == 1


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(body(generation())))
    assert plain(read(path)) == plain(generation())


def test_gzip_that_was_cut_gives_what_came_before(tmp_path: Path) -> None:
    many = b"".join(body(generation(name=f"r{n}", stream=n)) for n in range(200))
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(many)[:-5000])
    found = read(path)
    assert 0 < len(found.requests) < 200
    assert "cut off" in found.defects[-1].defect


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO(body(generation()))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(raw))
    assert len(read("-").requests) == 1


def test_a_cut_last_line_is_passed_over_and_said(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(body(generation()) + body(generation(name="r2"))[:-20])
    found = read(path)
    assert "r1" in [r.id for r in found.requests]
    assert [d.defect for d in found.defects] == [
        f"the end of {path} is cut off: what was written last is missing"
    ]


@pytest.mark.parametrize("left_out", [0, 1, 20])
def test_a_long_line_of_tokens_is_passed_over_to_its_end(tmp_path: Path, left_out: int) -> None:
    *_, tokens = to_lines(to_spans(generation(tokens=400)))
    assert len(tokens) > 100_000
    path = tmp_path / "trace.json"
    path.write_bytes(tokens + body(generation()) + tokens[: len(tokens) - left_out])
    found = read(path)
    assert [r.id for r in found.requests] == ["r1"]
    assert [d.defect for d in found.defects] == [
        f"the end of {path} is cut off: what was written last is missing"
    ] * bool(left_out)


def test_broken_lines_in_between_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b"oops\n" + body(generation()) + b"{oops\n")
    with pytest.raises(TraceFormatError):
        read(path)
    path.write_bytes(body(generation()) + b"oops\n{\n" + body(generation(name="r2")))
    found = read(path)
    assert len(found.requests) == 2
    assert "2 lines of" in found.defects[0].defect


def test_a_pretty_printed_document(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in body(generation()).splitlines()]
    whole = {"resourceSpans": [resource for line in lines for resource in line["resourceSpans"]]}
    for content in (json.dumps(whole, indent=2), json.dumps(lines), json.dumps({"trace": whole}, indent=1)):
        path = tmp_path / "trace.json"
        path.write_text("\ufeff" + content, encoding="utf-8")
        assert plain(read(path)) == plain(generation())


def test_lines_of_other_signals_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(body(generation()) + b'{"resourceLogs":[]}\n\n[1]\n"x"\n')
    assert plain(read(path)) == plain(generation())


def test_progress_counts_bytes(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(body(generation(tokens=400)) * 20)
    seen: list[tuple[int, int | None]] = []
    read(path, progress=lambda done, total: seen.append((done, total)))
    size = path.stat().st_size
    assert seen and all(0 < done <= size and total == size for done, total in seen)


def test_a_recording_without_requests_is_a_recording(tmp_path: Path) -> None:
    found = read(written(tmp_path / "t.json", recording()))
    assert found.requests == () and len(found.processes) == 1


def otlp(*spans: dict[str, object], scope: str = "other") -> bytes:
    pairs = [
        {
            "traceId": "AB" * 16,
            "spanId": f"{n:016X}",
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": 1700000002000000000,
            "name": "llm_request",
            **span,
        }
        for n, span in enumerate(spans, 1)
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": pairs}]}]}
    return json.dumps(document).encode() + b"\n"


def pairs(**values: object) -> list[dict[str, object]]:
    kinds = {str: "stringValue", float: "doubleValue", int: "intValue"}
    return [{"key": k.replace("__", "."), "value": {kinds[type(v)]: v}} for k, v in values.items()]


def test_vllms_own_span_is_a_request(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    attributes = pairs(
        gen_ai__usage__prompt_tokens=10,
        gen_ai__usage__completion_tokens=5,
        gen_ai__latency__time_to_first_token=0.5,
        gen_ai__latency__time_in_model_prefill=0.2,
        gen_ai__latency__time_in_model_decode=1.0,
        gen_ai__latency__time_in_queue=0.1,
    )
    path.write_bytes(otlp({"attributes": attributes, "kind": 2}))
    found = read(path)
    (request,) = found.requests
    start = 1_700_000_000_000_000_000
    assert (request.engine, request.prompt_tokens, request.output_tokens) == ("vllm", 10, 5)
    assert request.received_ns == start + 200_000_000
    assert request.scheduled_ns == start + 300_000_000
    assert request.first_token_ns == start + 500_000_000
    assert request.last_token_ns == start + 1_500_000_000
    assert "first_token_ns" in request.derived
    assert found.source == "otlp"


def test_a_clients_span_over_a_servers_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    chat = pairs(gen_ai__operation__name="chat")
    path.write_bytes(
        otlp({"attributes": chat, "kind": 3}, {"attributes": chat, "kind": 2, "parentSpanId": f"{1:016X}"})
    )
    assert [r.span_id for r in read(path).requests] == [f"{2:016x}"]


@pytest.mark.parametrize("parents", [(2, 1), (1, 1), (2, 2)])
@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("name", ["chat", "gateway.request"])
def test_spans_that_are_each_others_parent_are_read_and_the_cycle_is_named(
    tmp_path: Path, parents: tuple[int, int], kind: int, name: str
) -> None:
    path = tmp_path / "trace.json"
    span = {"name": name, "attributes": pairs(gen_ai__operation__name="chat"), "kind": kind}
    path.write_bytes(otlp(*({**span, "parentSpanId": f"{n:016X}"} for n in parents)))
    found = read(path)
    assert found.requests
    assert any("above itself" in defect.defect for defect in found.defects)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (b"", TraceFormatError, "is empty"),
        (b" \n\n", TraceFormatError, "is empty"),
        (b"hello", TraceFormatError, "is not JSON"),
        (b"\x7fELF\0\0\0", TraceFormatError, "is binary"),
        (b"\x1f\x8bnonsense", UsageError, "begins like gzip"),
        (b'{"a": 1}', TraceFormatError, "is JSON without spans"),
        (b"[]", TraceFormatError, "is JSON without spans"),
        (b"PAR1....", TraceFormatError, "is Parquet"),
        (b'{"data":[{"traceID":"1","spans":[]}]}', NothingRecordedError, "holds no span and no LLM request"),
        (b'{"traceEvents":[]}', TraceFormatError, "is Chrome trace JSON"),
        (b'{"resourceSpans":[{"resou', TraceFormatError, "no complete span"),
        (b'{"resourceSpans":5}', TraceFormatError, "got `int` - at `$.resourceSpans`"),
        (b'{"resourceSpans":[}]}', TraceFormatError, "(byte 18)"),
        (b'{"resourceSpans":[]}', NothingRecordedError, "holds no span and no LLM request"),
        (otlp({"name": "GET /"}), NothingRecordedError, "holds 1 spans (GET /) and no LLM request"),
    ],
)
def test_what_is_no_trace_gets_one_line(
    tmp_path: Path, content: bytes, error: type[PhasetraceError], says: str
) -> None:
    path = tmp_path / "input"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        read(path)
    assert says in str(caught.value) and "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_what_cannot_be_opened_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"does not exist; `phasetrace run"):
        read(tmp_path / "missing.json")
    with pytest.raises(UsageError, match="is a folder"):
        read(tmp_path)


def test_a_file_that_cannot_be_read_gets_one_line() -> None:
    with pytest.raises(UsageError, match="Input/output error"):
        read("/proc/self/mem")


@pytest.mark.parametrize("lines", [1, 5])
def test_a_line_that_would_fill_memory_is_refused(
    tmp_path: Path, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (source, json_text):
        monkeypatch.setattr(module, "LONGEST", 1 << 20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b'{"resourceSpans":[' + (b" " * (1 << 20) + b"\n") * lines))
    with pytest.raises(TraceFormatError, match="more than 1 MiB"):
        read(path)


def test_what_was_written_twice_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(body(generation()) * 2)
    assert plain(read(path)) == plain(generation())


def test_damaged_spans_are_told_where_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(otlp({"startTimeUnixNano": "x", "attributes": [{"key": "gen_ai.request.model"}]}))
    with pytest.raises(NothingRecordedError, match="1 damaged spans"):
        read(path)


@pytest.mark.parametrize("damaged", ["phasetrace.steps.table", "phasetrace.steps.part_table"])
def test_damaged_columns_are_left_out_and_said(damaged: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    text = body(generation()).decode()
    document = json.loads(next(line for line in text.splitlines() if "phasetrace.steps.table" in line))
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    for pair in span["attributes"]:
        if pair["key"] == damaged:
            pair["value"]["bytesValue"] = "AAAA"
    other = [line for line in text.splitlines() if "phasetrace.steps.table" not in line]
    path.write_text("\n".join([*other, json.dumps(document)]) + "\n")
    found = read(path)
    assert len(found.requests) == 1 and found.steps == ()
    assert "phasetrace.steps" in found.defects[0].defect


@given(recorded=recordings(), at=..., junk=...)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_makes_it_crash(recorded: Recording, at: int, junk: bytes, tmp_path: Path) -> None:
    content = bytearray(body(recorded))
    where = at % len(content)
    content[where : where + len(junk)] = junk
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    try:
        read(path)
    except PhasetraceError as error:
        assert "\n" not in str(error)
