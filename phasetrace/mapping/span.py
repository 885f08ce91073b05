"""Spans as plain data, neutral of how they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from phasetrace.model import Ints

Value = bool | int | float | str | bytes | list[int] | list[str] | list[float]
Attributes = dict[str, Value]
Link = tuple[str, str]  # trace and span id


class Kind(IntEnum):
    """OTLP's numbers."""

    UNSPECIFIED = 0
    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


@dataclass(frozen=True, slots=True)
class Event:
    """A moment inside a span."""

    name: str
    time_ns: int


@dataclass(slots=True)
class Span:
    """One span. `kept` is what only a file holds: the packed columns that make it lossless."""

    trace_id: str  # 32 hex digits
    span_id: str  # 16 hex digits
    parent_span_id: str | None
    name: str
    start_ns: int
    end_ns: int
    kind: Kind = Kind.INTERNAL
    attributes: Attributes = field(default_factory=dict)
    kept: Attributes = field(default_factory=dict)
    error: str | None = None  # makes the status ERROR
    links: tuple[Link, ...] = ()
    events: tuple[Event, ...] = ()  # of other tools' spans; phasetrace writes none

    def get(self, key: str) -> Value | None:
        """An attribute, wherever it is."""
        value = self.attributes.get(key)
        return self.kept.get(key) if value is None else value


@dataclass(slots=True)
class TokenSpans:
    """The token spans under one decode, as columns: an object for each would cost more than writing it."""

    trace_id: str
    parent_span_id: str
    first_id: int  # span ids count up from here
    begin_ns: Ints
    end_ns: Ints
    index: Ints  # number of the first token in each span
    count: Ints  # tokens of one sequence in each span

    def __len__(self) -> int:
        return len(self.begin_ns)


@dataclass(slots=True)
class ResourceSpans:
    """Spans of one process. Those marked `file_only` carry what endpoints have no use for."""

    resource: Attributes
    spans: list[Span]
    tokens: list[TokenSpans] = field(default_factory=list)
    file_only: bool = False
    scope: str = ""  # the instrumentation scope that wrote them, where a file says it

    def __len__(self) -> int:
        return len(self.spans) + sum(map(len, self.tokens))


def derived_id(size: int, *parts: object) -> str:
    """An id of `size` bytes in hex that looks random and is the same for the same parts."""
    text = "/".join(str(part) for part in parts)
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()


def prefixed(prefix: str, values: Mapping[str, Value]) -> Attributes:
    """A mapping's entries as attributes under one prefix."""
    return {prefix + name: value for name, value in values.items()}


def under(prefix: str, attributes: Mapping[str, Value]) -> dict[str, Value]:
    """The other way round: the entries whose keys begin with `prefix`."""
    return {key[len(prefix) :]: value for key, value in attributes.items() if key.startswith(prefix)}
