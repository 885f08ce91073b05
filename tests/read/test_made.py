"""Files that the real tools wrote (`made/README.md`): the right requests, with the right marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasetrace.cli import inputs
from phasetrace.model import Provenance, Recording, Request, RequestStatus
from phasetrace.read import read

MADE = Path(__file__).with_name("made")
MS = 1_000_000
KNOWN, DERIVED, UNKNOWN = Provenance.OBSERVED, Provenance.DERIVED, Provenance.UNKNOWN
MOMENTS = ("received_ns", "scheduled_ns", "first_token_ns", "last_token_ns")


def made(name: str) -> Recording:
    return read(MADE / name)


def tokens(found: Recording) -> list[tuple[int | None, int | None]]:
    return [(r.prompt_tokens, r.output_tokens) for r in found.requests]


def marks(request: Request) -> list[Provenance]:
    return [request.provenance(name) for name in MOMENTS]


def said(found: Recording) -> str:
    return "\n".join(defect.defect for defect in found.defects)


ASKED = [(22, 24), (137, 40), (137, 16), (3, 8)]


def test_vllms_own_tracing() -> None:
    found = made("vllm.pb")
    assert tokens(found) == ASKED * 2
    for request in found.requests:
        assert (request.engine, request.status) == ("vllm", RequestStatus.OK)
        assert marks(request) == [DERIVED] * 4 and request.provenance("finished_ns") is KNOWN
        moments = [request.arrival_ns, *(getattr(request, name) for name in MOMENTS), request.finished_ns]
        assert moments == sorted(moments)
        assert request.provenance("cached_tokens") is UNKNOWN
    first = found.requests[0]
    assert first.first_token_ns is not None and first.external_id == "chatcmpl-8513428cb82260c0"
    assert first.first_token_ns - first.arrival_ns == 37_731_886  # its time_to_first_token
    assert first.settings["max_new_tokens"] == 24


def test_vllms_offline_outputs() -> None:
    found = made("vllm-offline.jsonl")
    assert tokens(found) == [(6, 24), (122, 40), (3, 8)]
    for request in found.requests:
        assert (request.engine, request.model, request.cached_tokens) == ("vllm", "small-llama", 0)
        assert marks(request) == [DERIVED] * 4
        moments = [request.arrival_ns, *(getattr(request, name) for name in MOMENTS), request.finished_ns]
        assert moments == sorted(moments)
    first = found.requests[0]
    assert first.first_token_ns is not None and first.scheduled_ns is not None
    assert first.first_token_ns - first.arrival_ns == 75_044_632  # its first_token_latency
    assert first.first_token_ns - first.scheduled_ns == pytest.approx(59_901_457, abs=2_000)  # by its `_ts`


def test_openinference_observes_the_first_token() -> None:
    found = made("openinference.json")
    assert tokens(found) == ASKED
    assert [r.provenance("first_token_ns") for r in found.requests] == [KNOWN, KNOWN, UNKNOWN, UNKNOWN]
    assert [r.finish_reason for r in found.requests] == ["length"] * 4
    assert all(marks(r)[:2] == [UNKNOWN] * 2 for r in found.requests)


def test_openllmetry_observes_the_first_token_of_a_stream() -> None:
    found = made("openllmetry.pb")
    assert tokens(found) == ASKED
    assert [r.provenance("first_token_ns") for r in found.requests] == [KNOWN, KNOWN, UNKNOWN, UNKNOWN]
    assert [r.operation for r in found.requests] == ["chat"] * 3 + ["text_completion"]
    assert "OpenLLMetry" in said(found)


@pytest.mark.parametrize("name", ["genai-old.pb", "genai.pb"])
def test_opentelemetrys_own_instrumentation_in_both_generations_of_its_conventions(name: str) -> None:
    found = made(name)
    assert tokens(found) == [(8, 24), (104, 40), (104, 16)]
    assert [(r.engine, r.operation, r.model) for r in found.requests] == [
        ("openai", "chat", "small-llama")
    ] * 3
    assert all(marks(r) == [UNKNOWN] * 4 for r in found.requests)
    assert "the GenAI conventions do not say" in said(found)


def test_a_client_and_its_server_are_one_request_in_two_files() -> None:
    """OpenLLMetry hands its trace on to the server; OpenInference does not."""
    together = [str(MADE / "vllm.pb"), str(MADE / "openllmetry.pb")]
    assert [r.engine for r in inputs.read(together).requests] == ["vllm"] * 8


def test_openllmetry_of_a_pipeline_knows_how_long_it_took() -> None:
    found = made("openllmetry-transformers.pb")
    assert tokens(found) == [(None, None)] * 2 and {r.model for r in found.requests} == {"small-llama"}
    assert all(marks(r) == [UNKNOWN] * 4 for r in found.requests)
    assert "no tokens either" in said(found)


def test_openlit_of_a_pipeline_is_refused_what_it_did_not_measure() -> None:
    found = made(
        "openlit-transformers.pb"
    )  # 32 tokens each; it says 49 and 127, and a first token at the end
    assert tokens(found) == [(None, None)] * 2 and [r.cached_tokens for r in found.requests] == [None] * 2
    assert all(marks(r) == [UNKNOWN] * 4 for r in found.requests)
    for refused in (
        "prompt tokens",
        "output tokens",
        "cached tokens",
        "time to first token",
        "time per output",
    ):
        assert f"{refused}" in said(found)


@pytest.mark.parametrize(
    ("name", "ends_ns"),
    [
        ("sdk.json", 1500 * MS + 123),
        ("sdk.pb", 1500 * MS + 123),
        ("sdk-file.jsonl", 1500 * MS + 123),
        ("sdk-console.txt", 1500 * MS),
        ("sdk-zipkin.json", 1500 * MS),
        ("javascript.json", 1500 * MS),
    ],
)
def test_each_exporter_of_an_sdk_tells_the_same(name: str, ends_ns: int) -> None:
    found = made(name)
    assert tokens(found) == [(100, 64), (101, 64), (102, 64)]
    for number, request in enumerate(found.requests):
        assert request.finished_ns == request.arrival_ns + ends_ns
        assert request.first_token_ns == request.arrival_ns + (250 + 100 * number) * MS
        assert marks(request) == [UNKNOWN, UNKNOWN, DERIVED, UNKNOWN]
    assert [r.status for r in found.requests] == [RequestStatus.OK] * 2 + [RequestStatus.FAILED]
    assert found.requests[2].error_type == "TimeoutError"


@pytest.mark.parametrize("name", ["phoenix.json", "mlflow.json"])
def test_what_a_store_gives_out_of_a_client_and_its_server(name: str) -> None:
    """Both lose that the client is one; the id of the answer tells that it asked for the same request."""
    found, sent = made(name), {r.external_id: r for r in made("vllm.pb").requests}
    assert len(found.requests) == 8
    for request in found.requests:
        told = sent[request.external_id]
        assert request.sequences[0].output_tokens == told.sequences[0].output_tokens
        for moment in ("arrival_ns", *MOMENTS):
            assert getattr(request, moment) == pytest.approx(getattr(told, moment), abs=1000)  # Phoenix: us
        assert (request.engine, request.span_id) == ("vllm", told.span_id)
        assert marks(request) == [DERIVED] * 4


def test_phoenixs_own_form_of_otlp() -> None:
    found = made("phoenix-otlp.json")
    assert sorted(tokens(found)) == sorted(ASKED * 2) and {r.engine for r in found.requests} == {"vllm"}


def test_mlflows_client_writes_values_as_json() -> None:
    (request,) = made("mlflow-client.json").requests
    assert (request.engine, request.external_id) == ("vllm", "cmpl-9e64fd314ffca591-0")
    assert (request.prompt_tokens, request.output_tokens) == (3, 8)
