"""A real vLLM under `phasetrace run --metrics`, and a real Prometheus that scrapes both."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integrations.vllm.engine import ENVIRONMENT, STARTS_WITHIN, Server

PROMETHEUS = shutil.which("prometheus")
SCRAPES = 4  # a rate needs two, and a busy machine misses one
CLIENTS = 12


@dataclass
class Observed:
    """Where to ask."""

    prometheus: str
    page: str  # of phasetrace
    own: str  # of vLLM

    def query(self, promql: str) -> list[dict[str, Any]]:
        """What an instant query gives now."""
        return list(self._ask("query", query=promql)["result"])

    def label_values(self, label: str, series: str) -> list[str]:
        """Grafana's `label_values(series, label)`."""
        return list(self._ask(f"label/{label}/values", **{"match[]": series}))

    def _ask(self, what: str, **parameters: str) -> Any:
        words = urllib.parse.urlencode(parameters)
        return json.loads(fetch(f"{self.prometheus}/api/v1/{what}?{words}"))["data"]


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


@contextmanager
def observed(python: Path, model: Path, folder: Path) -> Iterator[Observed]:
    """Both, after so much traffic that every panel has something to show."""
    port, page, prometheus = free_ports(3)
    where = Observed(*(f"http://127.0.0.1:{p}" for p in (prometheus, page, port)))
    with ExitStack() as stack:
        stack.enter_context(
            process(vllm(python, model, port, page, folder), folder / "vllm.log", ENVIRONMENT)
        )
        until(lambda: fetch(f"{where.own}/health") == "", STARTS_WITHIN)
        stack.enter_context(process(scraper(prometheus, page, port, folder), folder / "prometheus.log", {}))
        until(lambda: "Ready" in fetch(f"{where.prometheus}/-/ready"), 60)
        traffic = stack.enter_context(requests(Server(port, str(model))))
        until(lambda: scraped_often(where, traffic), 120)
        yield where


def scraped_often(where: Observed, traffic: threading.Event) -> bool:
    """Whether all was scraped again and again since requests ended."""
    done = where.query("count_over_time(gen_ai_server_request_duration_seconds_count[1m])")
    own = where.query("count_over_time(vllm:request_success_total[1m])")
    both = [int(s["value"][1]) for s in done], [int(s["value"][1]) for s in own]
    assert not traffic.is_set()
    return all(counts and max(counts) >= SCRAPES for counts in both)


def vllm(python: Path, model: Path, port: int, page: int, folder: Path) -> list[object]:
    """A server with fewer slots than clients and a cache that is too small: the queue has reasons."""
    run = [
        sys.executable,
        "-m",
        "phasetrace",
        "run",
        "--quiet",
        "-o",
        folder / "trace.json",
        "--metrics",
        page,
    ]
    serve = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--port", port]
    limits = ["--max-num-seqs", 4, "--num-gpu-blocks-override", 24, "--max-model-len", 1024]
    return [*run, "--", *serve, "--host", "127.0.0.1", "--enforce-eager", "--dtype", "float32", *limits]


def scraper(port: int, page: int, own: int, folder: Path) -> list[object]:
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
            for name, target in (("phasetrace", page), ("vllm", own))
        ],
    }
    (folder / "prometheus.json").write_text(json.dumps(config))  # YAML is a superset
    where = [f"--config.file={folder / 'prometheus.json'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    return [PROMETHEUS, *where, f"--web.listen-address=127.0.0.1:{port}"]


@contextmanager
def requests(server: Server) -> Iterator[threading.Event]:
    """Clients that ask again and again, with a shared beginning, until left; set when one failed."""
    over, failed = threading.Event(), threading.Event()

    def ask(client: int) -> None:
        shared = list(range(3, 67))
        try:
            while not over.is_set():
                status, _, _ = server.complete(shared + [100 + client] * 8, max_tokens=16)
                if status != 200:
                    failed.set()
        except OSError:
            if not over.is_set():
                failed.set()

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        yield failed
    finally:
        over.set()
        for thread in threads:
            thread.join(60)


@contextmanager
def process(command: list[object], log: Path, environment: dict[str, str]) -> Iterator[None]:
    with (
        log.open("w") as file,
        subprocess.Popen(
            [str(word) for word in command],
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
        ) as started,
    ):
        try:
            yield
        finally:
            started.terminate()
            started.wait(60)


def until(true: Callable[[], bool], seconds: float) -> None:
    """Wait for it."""
    end = time.monotonic() + seconds
    while True:
        try:
            if true():
                return
        except OSError:
            pass
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.5)


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
