"""Reads what the user names into one recording, with a progress bar when that takes longer than a second."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import click

from phasetrace.collector import without_collections
from phasetrace.errors import NothingRecordedError, PhasetraceError, TraceFormatError, UsageError
from phasetrace.model import Defect, Recording, Table

_NAMED = 3  # files of a folder that are left out
PATIENCE_S = 1.0  # nobody wonders before
TRACES = (".json", ".jsonl", ".ndjson", ".pb", ".binpb", ".otlp")  # of the files of a folder


def of_last_run() -> tuple[str, ...]:
    """What `phasetrace run` wrote here without being told a name; that name where there is nothing."""
    from phasetrace.emit.trace_file import pieces

    name = Path("trace.json")
    return tuple(map(str, pieces(name) or [name]))


def read(sources: Sequence[str]) -> Recording:
    """All sources as one recording; raises one clear line where there is no request in them."""
    found = read_any(sources)
    if isinstance(found, Table):
        raise UsageError(f"{sources[0]} is a table of numbers ({found.source}); only `diagnose` takes one")
    return found


def read_any(sources: Sequence[str]) -> Recording | Table:
    """The one table of numbers, or all sources as one recording."""
    from phasetrace import read as reader

    parts: list[reader.Part] = []
    chosen = list(_files(sources))
    left_out: list[str] = []
    with without_collections():
        for source, named in chosen:
            try:
                with Progress(source) as progress:
                    one = reader.read_part(source, progress=progress)
                if isinstance(one, Table) and len(chosen) > 1:
                    raise UsageError(f"{source} is a table of numbers ({one.source}); diagnose it by itself")
            except PhasetraceError as error:
                if named:
                    raise
                left_out.append(str(error))
                continue
            if isinstance(one, Table):
                return one
            parts.append(one)
        if not parts:
            raise TraceFormatError(_none_of(sources, left_out))
        recording = reader.recording(parts, _together)
    recording = replace(recording, defects=(*recording.defects, *_said(left_out)))
    if not recording.requests:
        names = ", ".join(_shown(source) for source, _ in chosen)
        damage = "; ".join(defect.defect for defect in recording.defects)
        hint = damage or "record the application with `phasetrace run -- COMMAND`"
        raise NothingRecordedError(f"{names}: no LLM request in it; {hint}")
    return recording


def asking(sources: Sequence[str], options: Mapping[str, str | int | None]) -> list[str]:
    """The sources, with what is asked of those that are servers."""
    from phasetrace.read import servers

    made = [servers.asked(s, options) if servers.is_address(s) else s for s in sources]
    given = [name for name, value in options.items() if value is not None]
    if given and not any(map(servers.is_address, sources)):
        raise UsageError(f"--{given[0]} is for the address of a server; {sources[0]} is a file")
    return made


def _shown(source: str) -> str:
    """What a source is called; of an address without its query, which may be a signature."""
    from phasetrace.read import servers

    return click.format_filename(source.partition("?")[0] if servers.is_address(source) else source)


def _files(sources: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each source, and instead of a folder the traces in it; and whether it was named itself."""
    for source in sources:
        if source == "-" or not os.path.isdir(source):
            yield source, True
            continue
        inside = sorted(entry.path for entry in os.scandir(source) if _may_be_trace(entry))
        if not inside:
            raise UsageError(f"{source} is a folder without a trace ({', '.join(TRACES)})")
        yield from ((path, False) for path in inside)


def _may_be_trace(entry: os.DirEntry[str]) -> bool:
    name = entry.name.removesuffix(".gz").removesuffix(".zst")
    if not name.endswith(TRACES) or name.endswith(".config.json"):
        return False
    try:
        return entry.is_file()
    except OSError:  # a link to itself
        return False


def _said(left_out: Sequence[str]) -> Iterator[Defect]:
    """Files of a folder that are no traces: the first few by name."""
    for reason in left_out[:_NAMED]:
        yield Defect(f"left out: {reason.partition(';')[0]}")
    if (others := len(left_out) - _NAMED) > 0:
        yield Defect(f"left out: {others:,} more files that are no traces")


def _none_of(sources: Sequence[str], left_out: Sequence[str]) -> str:
    if len(left_out) == 1:
        return left_out[0]
    return f"{', '.join(sources)}: none of {len(left_out):,} files is a trace; the first: {left_out[0]}"


class Progress:
    """A bar on stderr that appears late, only on a terminal, and takes itself away."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._begin = time.monotonic()
        self._bar: click._termui_impl.ProgressBar[int] | None = None
        self._done = 0

    def __enter__(self) -> Progress:
        return self

    def __call__(self, done: int, total: int | None = None) -> None:
        """So many bytes are read, of so many."""
        if self._bar is None and total and self._wanted():
            label = f"reading {_shown(self._source)}"
            self._bar = click.progressbar(length=total, label=label, file=sys.stderr)
        if self._bar is not None:
            self._bar.update(done - self._done)
            self._done = done

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.render_finish()

    def _wanted(self) -> bool:
        return sys.stderr.isatty() and time.monotonic() - self._begin > PATIENCE_S


def _together(a: Recording, b: Recording) -> Recording:
    from phasetrace.supervise.merge import merge

    return merge(a, b)
