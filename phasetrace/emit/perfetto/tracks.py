"""Numbers for processes and lines, and events on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from phasetrace.emit.text import valid
from phasetrace.mapping import service_name
from phasetrace.model import Process

Event = dict[str, Any]
Line = tuple[int, int]  # the process's number and the line's
_US = 1000
_LONGEST = 256  # characters of a name or a text: more is no longer something to look at


class Tracks:
    """Gives processes and their lines numbers, in the order in which they are to be shown."""

    def __init__(self, processes: Iterable[Process], origin_ns: int) -> None:
        self._known = {process.key: process for process in processes}
        self._origin = origin_ns
        self._numbers: dict[str, int] = {}
        self._lines: dict[tuple[str, str], Line] = {}  # process and what the line is for

    def find(self, process: str, what: str) -> Line | None:
        """The line for `what`, if there is one."""
        return self._lines.get((process, what))

    def line(self, process: str, what: str, name: str) -> Iterator[Event]:
        """Make sure that there is a line for `what`; the events that name it."""
        number = self._numbers.get(process)
        if number is None:
            number = self._numbers[process] = self._number(process)
            yield _named("process_name", number, 0, self._name(process))
        if (process, what) not in self._lines:
            line = len(self._lines) + 1
            self._lines[process, what] = (number, line)
            yield _named("thread_name", number, line, name)
            yield _meta("thread_sort_index", number, line, {"sort_index": line})

    def slice(
        self, line: Line, category: str, name: str, begin_ns: int, end_ns: int, about: Mapping[str, Any]
    ) -> Event:
        """A stretch of time on a line."""
        return self.at(line, "X", name, begin_ns) | {
            "cat": category,
            "dur": (end_ns - begin_ns) / _US,
            "args": {short(key): _plain(value) for key, value in about.items()},
        }

    def count(self, line: Line, names: tuple[str, str], suffix: str, time_ns: int, value: int) -> Event:
        """A counter of the line's process has this value from then on."""
        name, key = names
        return self.at(line, "C", name + suffix, time_ns) | {"args": {key: value}}

    def at(self, line: Line, kind: str, name: str, time_ns: int) -> Event:
        """An event of a kind at a moment."""
        process, thread = line
        time = (time_ns - self._origin) / _US
        return {"ph": kind, "name": short(name), "pid": process, "tid": thread, "ts": time}

    def _name(self, process: str) -> str:
        known = self._known.get(process)
        return process if known is None else service_name(known, self._known.values())

    def _number(self, process: str) -> int:
        """Its process id, which viewers show; not where another host's process has the same."""
        known, taken = self._known.get(process), self._numbers.values()
        if known is not None and known.pid not in taken:
            return known.pid
        return max(taken, default=0) + 1


def short(text: str) -> str:
    """A text that can be shown."""
    text = valid(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _named(what: str, process: int, line: int, name: str) -> Event:
    return _meta(what, process, line, {"name": short(name)})


def _meta(what: str, process: int, line: int, args: Mapping[str, Any]) -> Event:
    return {"ph": "M", "name": what, "pid": process, "tid": line, "args": args}


def _plain(value: Any) -> Any:
    match value:
        case str():
            return short(value)
        case bytes():
            return None
        case list():
            return [_plain(item) for item in value[:_LONGEST]]
    return value
