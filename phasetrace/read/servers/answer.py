"""The traces that a server answers with: Jaeger, Tempo, or a file on any."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

from phasetrace.errors import NothingRecordedError, UsageError
from phasetrace.mapping import ResourceSpans
from phasetrace.read.formats import sniff
from phasetrace.read.notes import Notes
from phasetrace.read.recording import Part, part
from phasetrace.read.servers import jaeger, tempo
from phasetrace.read.servers.question import Question, question
from phasetrace.read.servers.web import Web
from phasetrace.read.source import Progress, Source

# Each gives documents, or None where the server does not speak it. Jaeger is to lose its older interface, so
# the newer is tried first.
_INTERFACES = (jaeger.newer, jaeger.older, tempo.tempo)


def read_server(address: str, progress: Progress | None = None) -> Part:
    """Read the traces that an address asks for; see `question`.

    Raises:
        UsageError: it cannot be reached, refuses, or is no such server.
        NothingRecordedError, TraceFormatError: as for a file.
    """
    wanted = question(address, time.time_ns())
    web, notes = Web(wanted.base, progress), Notes(wanted.base)
    return part(_spans(_documents(wanted, web), notes, wanted), notes)


def _documents(wanted: Question, web: Web) -> Iterator[bytes]:
    if wanted.document is not None:
        found = web.get(wanted.document)
        if found is None:
            raise UsageError(f"{wanted.base}{wanted.document.partition('?')[0]} is not there (404)")
        return iter([found])
    for interface in _INTERFACES:
        documents = interface(wanted, web)
        if documents is not None:
            return documents
    raise UsageError(f"{wanted.base} answers, but not as Jaeger or Tempo do; give the address of their API")


def _spans(documents: Iterator[bytes], notes: Notes, wanted: Question) -> Iterator[ResourceSpans]:
    empty = True
    for document in documents:
        source = Source(notes.name, raw=io.BytesIO(document))
        yield from sniff(source)(source, notes)
        empty = False
    if empty:
        of = f" of {wanted.service}" if wanted.service is not None else ""
        raise NothingRecordedError(
            f"{wanted.base} has no trace{of} in that time; go back further with `since`"
        )
