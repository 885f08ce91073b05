"""Spans -> the trace event JSON that Perfetto and Chrome open: a process each, a line each request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from phasetrace.emit.each_span import each_span
from phasetrace.mapping import ResourceSpans, Span
from phasetrace.semconv import Attribute as A

_US = 1000


def to_perfetto(groups: Iterable[ResourceSpans]) -> Iterator[bytes]:
    """One document, in pieces. Times count from the first span, so that they keep their nanoseconds."""
    yield b'{"displayTimeUnit":"ms","traceEvents":['
    events = _Events()
    for number, event in enumerate(event for group in groups for event in events.of(group)):
        yield (b",\n" if number else b"") + orjson.dumps(event)
    yield b"]}\n"


class _Events:
    """Gives processes and requests their numbers."""

    def __init__(self) -> None:
        self._begin: int | None = None
        self._processes: dict[str, int] = {}
        self._lines: dict[tuple[int, str], int] = {}  # the span of a request -> its line

    def of(self, group: ResourceSpans) -> Iterator[dict[str, Any]]:
        """The events of a group; what only a file holds is nothing to look at."""
        if group.file_only:
            return
        process = str(group.resource.get(A.PROCESS_KEY, ""))
        pid = self._processes.get(process)
        if pid is None:
            pid = self._processes[process] = len(self._processes) + 1
            yield _named("process_name", pid, 0, str(group.resource.get(A.SERVICE_NAME, process)))
        for _, span in each_span(group):
            line = self._lines.get((pid, span.parent_span_id or ""))
            if line is None:
                line = len(self._lines) + 1
                yield _named("thread_name", pid, line, str(span.get(A.ID) or span.name))
            self._lines[pid, span.span_id] = line
            yield self._event(span, pid, line)

    def _event(self, span: Span, pid: int, line: int) -> dict[str, Any]:
        if self._begin is None:
            self._begin = span.start_ns
        return {
            "ph": "X",
            "cat": "phasetrace",
            "name": _text(span.name),
            "pid": pid,
            "tid": line,
            "ts": (span.start_ns - self._begin) / _US,
            "dur": (span.end_ns - span.start_ns) / _US,
            "args": {_text(key): _plain(value) for key, value in span.attributes.items()},
        }


def _named(what: str, pid: int, line: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": line, "args": {"name": _text(name)}}


def _plain(value: Any) -> Any:
    return _text(value) if isinstance(value, str) else None if isinstance(value, bytes) else value


def _text(value: str) -> str:
    """Text that is valid UTF-8."""
    return str(value).encode("utf-8", "replace").decode()
