"""Any trace file -> Recording, a table of numbers -> Table: one module a format, one table a dialect."""

from __future__ import annotations

from os import PathLike, fspath

from phasetrace.errors import UsageError
from phasetrace.model import Recording, Table
from phasetrace.read import servers
from phasetrace.read.engine_config import EngineConfig, engine_config, stated_ceilings
from phasetrace.read.formats import sniff
from phasetrace.read.notes import Notes
from phasetrace.read.recording import Part, part, recording
from phasetrace.read.source import Progress, Source
from phasetrace.read.summary import is_summary, read_summary

__all__ = [
    "EngineConfig",
    "Part",
    "Progress",
    "engine_config",
    "read",
    "read_any",
    "read_part",
    "recording",
    "stated_ceilings",
]


def read(source: str | PathLike[str], progress: Progress | None = None) -> Recording:
    """Read one trace; see `read_any`. A table of numbers is refused: it holds no single request."""
    found = read_any(source, progress)
    if isinstance(found, Table):
        raise UsageError(
            f"{fspath(source)} is a table of numbers ({found.source}); only `diagnose` takes one"
        )
    return found


def read_any(source: str | PathLike[str], progress: Progress | None = None) -> Recording | Table:
    """Read one trace or a table of numbers; see `read_part`.

    Raises:
        NothingRecordedError: it tells of no LLM request. A trace of phasetrace's own without requests is
            given back all the same, for what it says of the processes.
    """
    found = read_part(source, progress)
    return found if isinstance(found, Table) else recording([found], lambda _, last: last)


def read_part(source: str | PathLike[str], progress: Progress | None = None) -> Part | Table:
    """Read a trace, to be made a `recording` with others, or a table of numbers.

    Args:
        source: a path, `-` for the standard input, or the address of a server that keeps traces; gzip and
            zstd are unpacked.
        progress: called now and then with the bytes read, and the bytes in all where known.

    Raises:
        UsageError: it cannot be opened.
        TraceFormatError: it is no trace that phasetrace can read.
    """
    name = fspath(source)
    if servers.is_address(name):
        from phasetrace.read.servers.answer import read_server

        return read_server(name, progress)
    opened = Source(name, progress)
    try:
        if is_summary(opened.head()):
            return read_summary(opened)
        notes = Notes(opened.name)
        return part(sniff(opened)(opened, notes), notes)
    finally:
        opened.close()
