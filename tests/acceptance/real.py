"""The real thing: `phasetrace` as a user starts it, on applications that a real engine runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from phasetrace import analyze
from phasetrace.model import Breakdown, Recording
from phasetrace.read import read
from tests.acceptance.planted import first_of

APPLICATIONS = Path(__file__).with_name("applications")
PHASETRACE = [sys.executable, "-m", "phasetrace"]
PATIENCE_S = 400


@dataclass(frozen=True)
class Run:
    """A recorded application, and what came of it."""

    folder: Path
    done: subprocess.CompletedProcess[str]

    @property
    def trace(self) -> Path:
        return self.folder / "trace.json"

    @cached_property
    def recording(self) -> Recording:
        return read(self.trace)

    @cached_property
    def breakdown(self) -> Breakdown:
        return analyze.breakdown(self.recording)

    def diagnosis(self, *options: str) -> dict[str, Any]:
        done = phasetrace("diagnose", str(self.trace), "--format", "json", *options)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def first(self, *options: str) -> dict[str, Any]:
        """The first finding that is the application's own."""
        diagnosis = self.diagnosis(*options)
        findings: list[dict[str, Any]] = diagnosis["findings"]
        print(diagnosis["verdict"], findings[0]["prediction"])
        return findings[first_of([finding["cause"] for finding in findings])]


@dataclass(frozen=True)
class Tour(Run):
    """With what lay in the run's folder while the application was running, by file."""

    seen: Mapping[str, bytes]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]


@dataclass(frozen=True)
class Engine:
    """An environment with the real transformers and torch, in which there is no phasetrace."""

    python: Path
    folders: tuple[Path, ...]
    examples: Path

    def with_first(self, *folders: Path) -> Engine:
        return Engine(self.python, (*folders, *self.folders), self.examples)

    def environment(self, more: Mapping[str, str] = {}) -> dict[str, str]:
        others = ("PYTHON", "PHASETRACE_", "OTEL_", "VIRTUAL_ENV")
        path = os.pathsep.join(map(str, [*self.folders, self.examples]))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        return {**kept, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", **more}

    def application(self, name: str, *arguments: str) -> list[str]:
        return [str(self.python), str(APPLICATIONS / name), *arguments]

    def record(self, folder: Path, command: Sequence[str], *options: str, env: Mapping[str, str] = {}) -> Run:
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            recorded(folder, command, *options),
            env=self.environment(env),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        return Run(folder, done)

    def start(
        self,
        folder: Path,
        command: Sequence[str],
        *options: str,
        env: Mapping[str, str] = {},
        output: int | IO[str] = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        folder.mkdir(parents=True, exist_ok=True)
        return subprocess.Popen(
            recorded(folder, command, *options),
            env=self.environment(env),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            text=True,
        )


def recorded(folder: Path, command: Sequence[str], *options: str) -> list[str]:
    where = ["-o", str(folder / "trace.json"), "--spool", str(folder / "spools")]
    return [*PHASETRACE, "run", *where, *options, "--", *command]


def phasetrace(*words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PHASETRACE, *words], capture_output=True, text=True, timeout=PATIENCE_S, **more)
