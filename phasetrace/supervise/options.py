"""What a run was asked for and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Detail = Literal["summary", "auto", "token"]
DETAILS: tuple[str, ...] = get_args(Detail)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What `phasetrace run` was asked for."""

    output: Path = Path("trace.json")
    otlp: str | None = None
    detail: str = "auto"
    spool: Path | None = None
    quiet: bool = False
    metrics: str | None = None  # [HOST:]PORT of a page for Prometheus
    live: bool = False
    max_size: int | None = None  # of the trace; what is older is dropped


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    exit_code: int  # the command's, 128 + n when signal n killed it
    output: Path
    left: Path | None = None  # a folder for `phasetrace recover`
