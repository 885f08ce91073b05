"""A recorded OpenAI server of the real vLLM, as a user starts and ends one."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.real import PATIENCE_S, Engine, Run
from tests.integrations.vllm.engine import ENVIRONMENT

PLAIN = ["--enforce-eager", "--dtype", "float32"]


@dataclass
class Server:
    """One that answers; `run` is complete once it has ended."""

    port: int
    model: str
    process: subprocess.Popen[str]
    folder: Path
    run: Run | None = None


@contextmanager
def recorded_server(
    engine: Engine,
    folder: Path,
    model: Path,
    options: Sequence[str] = (),
    env: Mapping[str, str] = {},
    recording: Sequence[str] = (),
    servers: int = 1,
) -> Iterator[Server]:
    """`phasetrace run` on it with options of `recording`; ended by SIGTERM unless it has ended before."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    if servers == 1:
        command = [str(engine.python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    else:
        command = engine.application("vllm_servers.py", str(model), "--api-server-count", str(servers))
    command += ["--host", "127.0.0.1", "--port", str(port), *PLAIN, *options]
    folder.mkdir(parents=True, exist_ok=True)
    with (
        (folder / "log").open("w") as log,
        engine.start(folder, command, *recording, env={**ENVIRONMENT, **env}, output=log) as process,
    ):
        server = Server(port, str(model), process, folder)
        try:
            await_answer(server)
            yield server
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=PATIENCE_S)
    done = subprocess.CompletedProcess(command, process.returncode, "", (folder / "log").read_text())
    server.run = Run(folder, done)


def await_answer(server: Server) -> None:
    """Until it is up."""
    end = time.monotonic() + PATIENCE_S
    while server.process.poll() is None and time.monotonic() < end:
        try:
            with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)) as connection:
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not start:\n" + (server.folder / "log").read_text()[-4000:])
