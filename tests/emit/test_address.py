"""What is an endpoint's address, what is spoken there, and what is said of the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace.emit import address
from phasetrace.emit.address import GRPC, HTTP
from phasetrace.errors import UsageError

GENERAL, TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


@pytest.mark.parametrize(
    "url, spoken",
    [
        ("localhost:4317", GRPC),
        ("http://localhost:4317", GRPC),
        ("http://localhost:4318", HTTP),
        ("localhost:4318", HTTP),
        ("https://host/v1/traces", HTTP),
        ("https://otlp.example.com", HTTP),
        ("http://collector", HTTP),
        ("HTTP://collector_1.local:80/otlp?key=1", HTTP),
        ("grpc://collector:80", GRPC),
        ("grpcs://collector", GRPC),
        ("[::1]:4317", GRPC),
        ("http://[fe80::1%eth0]:4318", HTTP),
        ("10.0.0.1:4318", HTTP),
    ],
)
def test_addresses(url: str, spoken: str) -> None:
    assert address.protocol(url, "TRACES") == spoken


NONE = ["nonsense", "localhost", "localhost:", ":4317", "4317", "::1", "host:port", "host:99999", "host:0"]
MISTYPED = ["http://", "http:/localhost:4318", "http//localhost:4318", "http://host:port", "http://a b:1"]
OF_OTHERS = ["ftp://host", "unix:///run/otel.sock", "/run/otel.sock", "./trace.json", "-", "http://..:1"]


@pytest.mark.parametrize("url", [*NONE, *MISTYPED, *OF_OTHERS, "", " "])
def test_what_is_none_gets_one_line_that_shows_one(url: str) -> None:
    with pytest.raises(UsageError, match="no address of an endpoint; give one like http://localhost") as told:
        address.check(url)
    assert "\n" not in str(told.value) and (url.strip() or repr(url)) in str(told.value)


@given(st.text())
def test_any_text_is_an_address_or_refused(url: str) -> None:
    try:
        assert address.protocol(url, "TRACES") in (GRPC, HTTP)
    except UsageError:
        pass


def test_the_environments_address_is_named_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GENERAL, "nonsense")
    with pytest.raises(UsageError, match=f"^{GENERAL}=nonsense is no address"):
        address.check(None)
    monkeypatch.setenv(GENERAL, "localhost:4318")  # by the specification, HTTP wants a scheme
    with pytest.raises(UsageError, match=f"^{GENERAL}=localhost:4318 lacks http://"):
        address.check(None)
    monkeypatch.setenv(TRACES, "http://localhost:4318/v1/traces")
    address.check(None)
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv(TRACES, "nonsense")
    address.check(None)


@pytest.mark.parametrize("target", ["collector", "dns:///collector:4317", "unix:///run/otel.sock"])
def test_over_grpc_the_environment_may_name_all_that_its_client_knows(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(GENERAL, target)
    monkeypatch.setenv(PROTOCOL, "grpc")
    assert address.protocol(None, "TRACES") == GRPC


def test_the_environments_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROTOCOL, "grpc")
    assert address.protocol("http://localhost:80", "TRACES") == GRPC
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
    assert address.protocol("http://localhost:4317", "TRACES") == HTTP
    assert address.protocol("http://localhost:80", "METRICS") == GRPC


def test_a_protocol_that_is_not_supported_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROTOCOL, "http/json")
    with pytest.raises(UsageError, match="http/json is not supported"):
        address.check("http://localhost:4318")
    assert address.protocol("grpc://localhost:4317", "TRACES") == GRPC  # it is not asked


@pytest.mark.parametrize(
    "text, meant",
    [
        ("http://localhost:4318", True),
        ("htp://localhost", True),
        ("localhost:4317", True),
        ("[::1]:4317", True),
        ("nonsense", False),
        ("trace.json", False),
        ("out/a:b.json", False),
        ("./localhost:4317", False),
    ],
)
def test_what_is_meant_as_an_address_where_a_file_may_be_named(text: str, meant: bool) -> None:
    assert address.is_meant(text) is meant
