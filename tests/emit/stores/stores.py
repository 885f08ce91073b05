"""Arize Phoenix and MLflow, each a server with a store of its own, and the spans that their APIs give."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from tests.conftest import ENGINES

STARTS_WITHIN_S = 240
EXPERIMENT = "0"  # MLflow's own


@dataclass(frozen=True)
class Stored:
    """A span as a store has it."""

    name: str
    parent: str | None
    begin_ns: int
    end_ns: int
    failed: bool
    attributes: dict[str, Any]


@contextmanager
def phoenix(folder: Path) -> Iterator[str]:
    """Its address."""
    port = str(free_port())
    settings = {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_PORT": port,
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    settings["PHOENIX_GRPC_PORT"] = str(free_port())
    with served(
        "phoenix", ["-m", "phoenix.server.main", "serve"], folder, settings, port, "/v1/projects"
    ) as url:
        yield url


@contextmanager
def mlflow(folder: Path) -> Iterator[str]:
    """Its address. It wants to be told the experiment, by a header."""
    port = str(free_port())
    command = ["-m", "mlflow", "server", "--port", port, "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{folder}/store.db"]
    with served("mlflow", command, folder, {}, port, "/health") as url:
        yield url


def of_phoenix(url: str) -> dict[str, Stored]:
    """All spans, by id. Its times have microseconds."""
    found, cursor = {}, ""
    while cursor is not None:
        page = ask(f"{url}/v1/projects/default/spans?limit=100{cursor and f'&cursor={cursor}'}")
        for span in page["data"]:
            found[span["context"]["span_id"]] = Stored(
                span["name"],
                span["parent_id"],
                since_epoch(span["start_time"]),
                since_epoch(span["end_time"]),
                span["status_code"] == "ERROR",
                span["attributes"],
            )
        cursor = page["next_cursor"]
    return found


def of_mlflow(url: str) -> dict[str, Stored]:
    """All spans, by id."""
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": EXPERIMENT}}
    told = ask(f"{url}/api/3.0/mlflow/traces/search", {"locations": [place], "max_results": 100})
    found = {}
    for trace in told["traces"]:
        whole = ask(f"{url}/api/3.0/mlflow/traces/get?trace_id={trace['trace_id']}")
        for span in whole["trace"]["spans"]:
            found[hexadecimal(span["span_id"])] = Stored(
                span["name"],
                hexadecimal(span["parent_span_id"]) if span.get("parent_span_id") else None,
                int(span["start_time_unix_nano"]),
                int(span["end_time_unix_nano"]),
                span["status"].get("code") == "STATUS_CODE_ERROR",
                {pair["key"]: plain(pair["value"]) for pair in span["attributes"]},
            )
    return found


@contextmanager
def served(
    name: str, command: list[str], folder: Path, settings: dict[str, str], port: str, ready: str
) -> Iterator[str]:
    python = ENGINES / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed; `make receivers` sets it up")
    url = f"http://127.0.0.1:{port}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "OTEL_"))}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [python, *command], cwd=folder, env=environment | settings, stdout=log, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            wait(process, url + ready, folder / "log")
            yield url
        finally:
            process.terminate()


def wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(0.5)
    raise AssertionError("it did not start:\n" + log.read_text()[-2000:])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=60) as answer:
        return json.load(answer)


def since_epoch(text: str) -> int:
    when = datetime.fromisoformat(text)
    return int(when.replace(microsecond=0).timestamp()) * 10**9 + when.microsecond * 1000


def hexadecimal(base64: str) -> str:
    return b64decode(base64).hex()


def plain(value: dict[str, Any]) -> Any:
    ((form, raw),) = value.items()
    return [plain(item) for item in raw["values"]] if form == "array_value" else raw
