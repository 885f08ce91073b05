"""Where an OTLP endpoint is: what the user says, else what OTEL_EXPORTER_OTLP_* say, by the specification."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from phasetrace.errors import UsageError

GRPC, HTTP = "grpc", "http/protobuf"
_GRPC_PORT = 4317
_PATHS = {"traces": "/v1/traces", "metrics": "/v1/metrics"}
_SCHEMES = ("http", "https", "grpc", "grpcs")
_HOST = re.compile(r"\w([\w.-]*\w)?\.?|[0-9a-f.]*:[0-9a-f:.]*(%\w+)?", re.IGNORECASE)  # a name, or IPv6
_HOST_AND_PORT = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):\d+")
_LIKE = "give one like http://localhost:4318 or localhost:4317"


def is_meant(text: str) -> bool:
    """Whether what may be a file's name as well is meant as an address: URL, or HOST:PORT."""
    return "://" in text or _HOST_AND_PORT.fullmatch(text) is not None


def is_configured() -> bool:
    """Whether the environment names an endpoint for traces."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(os.environ.get(name) for name in _variables("TRACES"))


def check(url: str | None) -> None:
    """Raise UsageError for an address or protocol that cannot be used, without importing an exporter."""
    if url is not None or is_configured():
        protocol(url, "TRACES")


def protocol(url: str | None, signal: str) -> str:
    """What is spoken at `url`, or where the environment says: GRPC or HTTP.

    Raises:
        UsageError: the address or the protocol cannot be used.
    """
    if url is not None:
        parts = _parts(url)
        return GRPC if parts.scheme.startswith(GRPC) else _asked(signal) or _by_port(parts)
    asked = _asked(signal)
    variable = next((name for name in _variables(signal) if os.environ.get(name)), None)
    if variable is None or asked == GRPC:  # gRPC's client knows more forms than we do
        return asked or HTTP
    return _of_variable(variable, asked)


def http_address(url: str | None, signal: str) -> str | None:
    """The whole address of a signal; None leaves it to the exporter to ask the environment."""
    if url is None:
        return None
    parts = _parts(url)
    path = parts.path.rstrip("/")
    for known in _PATHS.values():  # the address of one signal stands for its neighbours
        path = path.removesuffix(known)
    return urlunsplit((parts.scheme, parts.netloc, path + _PATHS[signal], parts.query, ""))


def grpc_address(url: str | None) -> dict[str, Any]:
    """What an exporter over gRPC is to be told; nothing leaves it to the exporter to ask the environment."""
    if url is None:
        return {}
    parts = _parts(url)
    secure = parts.scheme in ("https", "grpcs")
    return {
        "endpoint": f"{'https' if secure else 'http'}://{parts.netloc}",
        "insecure": not secure,
    }


def _variables(signal: str) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"


def _asked(signal: str) -> str | None:
    generally = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    asked = os.environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or generally
    if asked and asked not in (GRPC, HTTP):
        raise UsageError(f"OTEL_EXPORTER_OTLP_PROTOCOL={asked} is not supported; use {GRPC} or {HTTP}")
    return asked


def _of_variable(name: str, asked: str | None) -> str:
    address = os.environ[name]
    parts = _parts(address, called=f"{name}=")
    spoken = asked or (GRPC if parts.scheme.startswith(GRPC) else _by_port(parts))
    if spoken == HTTP and "://" not in address:
        raise UsageError(f"{name}={address} lacks http:// or https://")
    return spoken


def _by_port(parts: SplitResult) -> str:
    return GRPC if parts.port == _GRPC_PORT else HTTP


def _parts(address: str, called: str = "") -> SplitResult:
    """A host alone is no address: where a scheme is missing, a port tells that one is meant."""
    whole = "://" in address
    try:
        parts = urlsplit(address if whole else f"http://{address}")
        known = parts.scheme in _SCHEMES and (whole or parts.port is not None)
        if known and parts.port != 0 and _HOST.fullmatch(parts.hostname or ""):
            return parts
    except ValueError:  # the port is no number
        pass
    raise UsageError(
        f"{called}{address if address.strip() else repr(address)} is no address of an endpoint; {_LIKE}"
    )
