"""Any trace file -> Recording: one module a format, one table that tells them apart, one table a dialect."""

from __future__ import annotations

from os import PathLike, fspath

from phasetrace.model import Recording
from phasetrace.read.engine_config import EngineConfig, engine_config
from phasetrace.read.formats import sniff
from phasetrace.read.notes import Notes
from phasetrace.read.recording import recording
from phasetrace.read.source import Progress, Source

__all__ = ["EngineConfig", "Progress", "engine_config", "read"]


def read(source: str | PathLike[str], progress: Progress | None = None) -> Recording:
    """Read a trace.

    Args:
        source: a path, or `-` for the standard input; gzip and zstd are unpacked.
        progress: called now and then with the bytes read, and the bytes in all where known.

    Raises:
        UsageError: it cannot be opened.
        TraceFormatError: it is no trace that phasetrace can read.
        NothingRecordedError: it is one, and tells of no LLM request. A trace of phasetrace's own without
            requests is given back all the same, for what it says of the processes.
    """
    opened = Source(fspath(source), progress)
    try:
        notes = Notes(opened.name)
        return recording(sniff(opened)(opened, notes), notes)
    finally:
        opened.close()
