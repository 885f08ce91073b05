"""phasetrace shows where the time of LLM requests goes, and what to change.

The rooms of this package and the arrows between them are described in docs/architecture.md.
"""

from __future__ import annotations

import os

__version__ = "0.1.0"

__all__ = ["__version__", "instrument", "uninstrument"]


def instrument(
    output: str | os.PathLike[str] = "trace.json",
    otlp: str | None = None,
    detail: str = "auto",
    spool: str | os.PathLike[str] | None = None,
    max_size: int | None = None,
) -> None:
    """Record this process, and the Python processes that it starts from now on, as `phasetrace run` would.

    Call it before the engine is used. A process of ours writes the trace, also when this one is killed. Where
    recording is on already, by `phasetrace run` or an earlier call, this does nothing.

    Args:
        output: where the trace goes; an existing one is kept as trace.1.json.
        otlp: an OTLP endpoint that gets the spans as well.
        detail: how many spans an endpoint gets a request: summary, auto or token.
        spool: folder for what is recorded and not yet written.
        max_size: about how long the trace may become, in two files; what is older is dropped.
    """
    from pathlib import Path

    from phasetrace import supervise

    place = Path(spool) if spool is not None else None
    supervise.instrument(supervise.RunOptions(Path(output), otlp, detail, place, max_size=max_size))


def uninstrument() -> None:
    """End what `instrument` began, and wait until its trace is written."""
    from phasetrace import supervise

    supervise.uninstrument()
