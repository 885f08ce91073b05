"""A real vLLM: its Python, a tiny model made on the spot, a recorded server, and what was recorded of it."""

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasetrace.assemble.assembler import Assembler
from phasetrace.model import Recording
from tests.integrations.agent import Run

ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONWARNINGS": "",
}
STARTS_WITHIN = 240  # seconds, on a busy machine


def recording(run: Run) -> Recording:
    """What a supervisor would have made of the spool."""
    assembler = Assembler()
    for info, records in run.segments():
        assembler.feed(info, records)
    return assembler.close()


def run_offline(run: Run, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the offline application to its end."""
    return run_application(run, "offline_application.py", *arguments, **environment)


def run_application(
    run: Run, script: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run one of the applications beside this to its end."""
    application = Path(__file__).with_name(script)
    return subprocess.run(
        [run.python, application, *arguments],
        env=run.environment(**ENVIRONMENT, **environment),
        cwd=run.base,
        capture_output=True,
        text=True,
        timeout=2 * STARTS_WITHIN,
    )


@dataclass
class Server:
    """A server that answers."""

    port: int
    model: str

    def post(self, path: str, body: dict[str, Any], traceparent: str | None = None) -> tuple[int, Any, int]:
        """Status, the answer as an object or its lines of events, and how long it took."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=STARTS_WITHIN)
        headers = {"Content-Type": "application/json"}
        if traceparent is not None:
            headers["traceparent"] = traceparent
        begin = time.monotonic_ns()
        connection.request("POST", path, json.dumps({"model": self.model, **body}), headers)
        response = connection.getresponse()
        text = response.read().decode()
        took = time.monotonic_ns() - begin
        connection.close()
        return response.status, text.splitlines() if body.get("stream") else json.loads(text), took

    def complete(self, prompt: Any, traceparent: str | None = None, **body: Any) -> tuple[int, Any, int]:
        """A completion of as many tokens as are asked for."""
        told = {"prompt": prompt, "ignore_eos": True, "temperature": 0, **body}
        return self.post("/v1/completions", told, traceparent)

    def leave(self, **body: Any) -> None:
        """Ask for a stream and go away with its first bytes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=STARTS_WITHIN)
        told = {"model": self.model, "stream": True, "ignore_eos": True, **body}
        connection.request("POST", "/v1/completions", json.dumps(told), {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read(64)
        response.close()
        connection.close()


@contextmanager
def serve(run: Run, model: Path, *arguments: str, **environment: str) -> Iterator[Server]:
    """A recorded server, ended by SIGTERM."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [run.python, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--port", port]
    command += ["--host", "127.0.0.1", "--enforce-eager", "--max-model-len", 1024, "--dtype", "float32"]
    command += arguments
    with (
        (run.base / "server.log").open("w") as log,
        subprocess.Popen(
            [str(word) for word in command],
            env=run.environment(**ENVIRONMENT, **environment),
            cwd=run.base,
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            _wait(process, port, run.base / "server.log")
            yield Server(port, str(model))
        finally:
            process.terminate()
            process.wait(timeout=STARTS_WITHIN)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(2 * STARTS_WITHIN):
        if process.poll() is not None:
            break
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server did not start:\n" + log.read_text()[-4000:])
