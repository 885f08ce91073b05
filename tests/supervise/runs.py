"""Runs the `phasetrace` command on an application that needs no engine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasetrace.model import Recording
from phasetrace.read import read

APP = Path(__file__).with_name("fake_app.py")
# The interpreter behind our environment: phasetrace is not installed there.
PYTHON = os.path.realpath(sys.executable)
PHASETRACE = [sys.executable, "-m", "phasetrace"]
PATIENCE_S = 60


@dataclass
class Runs:
    """The runs of one test: where they write, and how they are started."""

    folder: Path

    @property
    def trace(self) -> Path:
        return self.folder / "trace.json"

    @property
    def spools(self) -> Path:
        """Where run folders are made, so that a test sees what is left."""
        return self.folder / "spools"

    @property
    def left(self) -> list[Path]:
        return sorted(self.spools.glob("phasetrace-*"))

    def words(self, command: Sequence[str], *options: str) -> list[str]:
        where = ["-o", str(self.trace), "--spool", str(self.spools)]
        return [*PHASETRACE, "run", *where, *options, "--", *command]

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        ours = ("PHASETRACE_", "PYTHONPATH", "OTEL_")
        return {k: v for k, v in os.environ.items() if not k.startswith(ours)} | dict(more)

    def run(self, command: Sequence[str], *options: str, env: Mapping[str, str] = {}, **more: Any) -> Done:
        return subprocess.run(
            self.words(command, *options),
            env=self.environment(env),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            **more,
        )

    def start(
        self, command: Sequence[str], *options: str, env: Mapping[str, str] = {}, **more: Any
    ) -> Started:
        return subprocess.Popen(
            self.words(command, *options),
            env=self.environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def recording(self) -> Recording:
        return read(self.trace)


Done = subprocess.CompletedProcess[str]
Started = subprocess.Popen[str]


def app(mode: str, argument: int = 0) -> list[str]:
    """The command line of the fake application."""
    return [PYTHON, str(APP), mode, str(argument)]


def until(condition: Callable[[], Any]) -> Any:
    """Wait until something holds, and give it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("waited in vain")
