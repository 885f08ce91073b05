"""A server's traces become a recording by its address; what goes wrong is one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from phasetrace.cli import main
from phasetrace.read import read
from phasetrace.read.servers import jaeger
from tests.read import writers
from tests.read.servers.keeper import Answer, Keeper, Pages, jaeger_1, jaeger_3, say, tempo

Captured = pytest.CaptureFixture[str]
Keep = Callable[..., Keeper]
LONG_AGO = "since=2020-01-01"


@pytest.fixture
def keep() -> Iterator[Keep]:
    kept: list[Keeper] = []

    def start(pages: Pages, **headers: str) -> Keeper:
        kept.append(Keeper(pages, headers))
        return kept[-1]

    yield start
    for keeper in kept:
        keeper.stop()


def failure(address: str, capsys: Captured, *options: str) -> str:
    assert main(["diagnose", address, *options]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "Traceback" not in error
    return error


def test_jaegers_api_v3(keep: Keep) -> None:
    kept = keep(jaeger_3(lambda _: writers.otlp(writers.spans())))
    found = read(f"{kept.url}?service=vllm-test&since=2023-11-14T00:00Z&until=2023-11-16&limit=7")
    assert [r.prompt_tokens for r in found.requests] == [2998] * 3
    path, query = kept.asked[1]
    assert path == "/api/v3/traces" and query == {
        "query.serviceName": "vllm-test",
        "query.startTimeMin": "2023-11-14T00:00:00.000000000Z",
        "query.startTimeMax": "2023-11-16T00:00:00.000000000Z",
        "query.searchDepth": "7",
    }


def test_the_jaeger_before_it_is_asked_where_there_is_no_v3(keep: Keep) -> None:
    kept = keep(jaeger_1(lambda _: writers.jaeger(writers.spans()), ["vllm-test"]))
    assert len(read(f"{kept.url}?since=2023-11-14&limit=3").requests) == 3
    path, query = kept.asked[-1]
    assert path == "/api/traces" and query["service"] == "vllm-test" and query["start"] == "1699920000000000"


def test_of_several_services_one_is_to_be_chosen(keep: Keep, capsys: Captured) -> None:
    kept = keep(jaeger_1(lambda _: {"data": []}, ["vllm-test", "web\x1b[31m"]))
    assert "choose one with `service`: vllm-test, web" in failure(kept.url, capsys)
    assert "has no trace of web in that time" in failure(kept.url, capsys, "--service", "web")


def test_more_than_a_page_is_asked_for_again(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first, as Jaeger's stores do, each trace with its own time."""
    monkeypatch.setattr(jaeger, "PAGE", 2)
    traces = [writers.otlp(writers.spans(1)) for _ in range(5)]
    begins = [10**18 * 17 // 10 + number * 10**9 for number in range(5)]
    for trace, begin in zip(traces, begins, strict=True):
        moved(trace, begin)

    def find(query: dict[str, str]) -> Any:
        end = query["query.startTimeMax"]
        until = datetime.fromisoformat(end[:26] + "Z").timestamp() * 1e9 + int(end[26:29])
        fitting = [t for t, begin in zip(traces, begins, strict=True) if begin < until]
        newest = fitting[-int(query["query.searchDepth"]) :]
        return {"resourceSpans": [r for t in newest for r in t["resourceSpans"]]} if newest else None

    kept = keep(jaeger_3(find))
    assert len(read(f"{kept.url}?{LONG_AGO}").requests) == 5
    assert [q["query.searchDepth"] for path, q in kept.asked if path.endswith("traces")] == ["2", "2", "2"]
    assert len(read(f"{kept.url}?{LONG_AGO}&limit=3").requests) == 3


def moved(trace: dict[str, Any], begin: int) -> None:
    for resource in trace["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                length = int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])
                span["startTimeUnixNano"], span["endTimeUnixNano"] = str(begin), str(begin + length)


@pytest.mark.parametrize("older", [False, True])
def test_tempo_gives_traces_one_by_one(older: bool, keep: Keep) -> None:
    whole = writers.by_the_book(writers.spans())
    ids = [f"{number:032x}" for number in (7, 8, 9)]
    kept = keep(tempo({ident: {"trace": whole} for ident in ids}, older))
    assert len(read(f"{kept.url}?service=vllm-test&{LONG_AGO}&limit=2").requests) == 3  # the same ones twice
    searched = next(query for path, query in kept.asked if path == "/api/search")
    assert searched["q"] == '{ resource.service.name = "vllm-test" }' and searched["limit"] == "2"
    given = [
        path for path, _ in kept.asked if path.startswith("/api/traces/" if older else "/api/v2/traces/")
    ]
    assert [path[-32:] for path in given if path[-32:] in ids] == ids[:2]


@pytest.mark.parametrize(
    ("address", "document"),
    [
        ("/trace/" + "ab" * 16, "/api/traces/" + "ab" * 16),
        ("/api/v3/traces/" + "ab" * 16 + "?x=1", "/api/v3/traces/" + "ab" * 16),
        ("/under/it/api/v2/traces/7b", "/under/it/api/v2/traces/7b"),
    ],
)
def test_the_address_of_one_trace_is_that_trace(address: str, document: str, keep: Keep) -> None:
    kept = keep(lambda path, _: say(writers.otlp(writers.spans())) if path == document else None)
    assert len(read(kept.url + address).requests) == 3
    assert len(kept.asked) == 1


def test_the_address_of_a_file_is_that_file_with_its_query(keep: Keep, capsys: Captured) -> None:
    kept = keep(lambda path, _: (200, writers.protobuf(writers.spans())) if path == "/a/trace.pb" else None)
    assert len(read(f"{kept.url}/a/trace.pb?signature=s3cret").requests) == 3
    assert kept.asked == [("/a/trace.pb", {"signature": "s3cret"})]
    other = keep(lambda *_: say(writers.otlp([])))
    assert "s3cret" not in failure(f"{other.url}/trace.json?signature=s3cret", capsys)
    error = failure(f"{kept.url}/b/trace.json.gz?signature=s3cret", capsys)
    assert "/b/trace.json.gz is not there (404)" in error and "s3cret" not in error


def test_headers_come_from_the_environment(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHASETRACE_HEADERS", "Authorization=Bearer%20s3cret, X-Scope-OrgID=team")
    kept = keep(jaeger_3(lambda _: writers.otlp(writers.spans())))
    read(f"{kept.url}?{LONG_AGO}")
    assert all((h["authorization"], h["x-scope-orgid"]) == ("Bearer s3cret", "team") for h in kept.headers)


def test_headers_go_to_no_other_host(keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("PHASETRACE_HEADERS", "Authorization=s3cret")
    other = keep(lambda *_: say({}))
    kept = keep(lambda *_: (302, b""), Location=other.url)
    assert f"sends on to {other.url}" in failure(kept.url, capsys)
    assert other.headers == []


def refusing(status: int, body: bytes) -> Pages:
    def pages(*_: object) -> Answer:
        return status, body

    return pages


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        (
            refusing(401, b"who are you?"),
            "answers 401 who are you?; a header for it goes into PHASETRACE_HEADERS",
        ),
        (refusing(500, b"\x1b[31mboom\n" * 1000), "answers 500"),
        (refusing(404, b""), "not as Jaeger or Tempo do"),
        (refusing(200, b"<html>"), "not as Jaeger or Tempo do"),
        (jaeger_3(lambda _: None), "has no trace in that time"),
        (tempo({}), "has no trace in that time"),
        (jaeger_3(lambda _: {}), "has no trace in that time"),
    ],
)
def test_what_goes_wrong_is_one_line(pages: Pages, told: str, keep: Keep, capsys: Captured) -> None:
    error = failure(keep(pages).url, capsys)
    assert told in error and len(error) < 400 and "\x1b" not in error


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("http://127.0.0.1:1", "cannot be read: Connection refused"),
        ("http://user:s3cret@host/", "PHASETRACE_HEADERS"),
        ("http://[bad", "no address"),
        ("http://host:port", "no address"),
        ("http:///path", "names no host"),
        ("http://127.0.0.1:1/?since=yesterday", "'yesterday' is no time"),
        ("http://127.0.0.1:1/?since=1h&until=2h", "not before"),
        ("http://127.0.0.1:1/?limit=0", "is no limit"),
        ("http://127.0.0.1:1/?sevice=x", "'sevice' is not asked"),
    ],
)
def test_mistakes_in_an_address(address: str, told: str, capsys: Captured) -> None:
    error = failure(address, capsys)
    assert told in error and "s3cret" not in error


def test_an_answer_without_end_is_refused(
    keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("phasetrace.read.servers.web.LONGEST", 1000)
    assert "ask for less with `limit`" in failure(keep(refusing(200, b" " * 2000)).url, capsys)


def test_options_are_a_part_of_the_address(keep: Keep, capsys: Captured) -> None:
    kept = keep(jaeger_3(lambda _: writers.otlp(writers.spans())))
    options = ["--service", "a b", "--since", "2020-01-01", "--limit", "5"]
    assert main(["diagnose", f"{kept.url}/?limit=7", *options]) == 0
    assert kept.asked[-1][1]["query.serviceName"] == "a b" and kept.asked[-1][1]["query.searchDepth"] == "5"
    assert "vllm" in capsys.readouterr().out


def test_options_are_for_servers_only(tmp_path: Path, capsys: Captured) -> None:
    assert "--limit is for the address of a server" in failure(str(tmp_path), capsys, "--limit", "5")
