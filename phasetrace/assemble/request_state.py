"""What is known so far of one request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from phasetrace.assemble.stream import Stream
from phasetrace.model import Ints, PrefixChunk

Span = tuple[int, int]  # first and last step
# Other threads' segments may hold a finished request's last steps and are drained in turn; after this many
# drains without them they are lost, and the request is let go without them.
_PATIENCE = 10


@dataclass(slots=True)
class RequestState:
    """One request's records, merged; they come in any order, since threads write to different segments."""

    process: str
    ident: int
    arrived: int | None = None
    finished: int | None = None
    joined: list[int] = field(default_factory=list)  # steps with which it entered the batch
    left: list[int] = field(default_factory=list)  # and after which it left it
    data: dict[str, Any] = field(default_factory=dict)
    marks: dict[int, list[int]] = field(default_factory=dict)
    prefixes: dict[int, tuple[PrefixChunk, ...]] = field(default_factory=dict)
    scheduled: dict[int, int] = field(default_factory=dict)  # step -> positions, where not one a row
    yielded: dict[int, int] = field(default_factory=dict)  # step -> tokens a sequence, where not one
    takes_since_finished: int = 0
    told: bool = False  # nothing more is to be expected of it
    given_out: bool = False  # with another side of it

    @property
    def side(self) -> str | None:
        """Which side of a request this is, where several processes tell of it."""
        side = self.data.get("side")
        return side if isinstance(side, str) else None

    @property
    def first_step(self) -> int | None:
        """The step with which it first entered the batch."""
        return min(self.joined, default=None)

    @property
    def last_step(self) -> int | None:
        """The last step it took part in, once it has left the batch for good."""
        if self.left and max(self.left) >= max(self.joined, default=0):
            return max(self.left)
        told = self.data.get("last_step")
        return told if isinstance(told, int) else None

    def away(self) -> set[int]:
        """The steps between its first and its last in which it was not in the batch: it had been evicted."""
        missed: set[int] = set()
        for again in sorted(self.joined)[1:]:
            before = max((step for step in self.left if step < again), default=again)
            missed.update(range(before + 1, again))
        return missed

    @property
    def stream(self) -> int:
        """The stream of its steps: a `generate()` call is one of its own, under the request's id."""
        return int(self.data.get("stream", self.ident))

    @property
    def owns_stream(self) -> bool:
        """Whether no other request takes part in its steps."""
        return self.stream == self.ident

    @property
    def rows(self) -> int:
        """Rows it takes up in the batch; beams and parallel samples each have one."""
        settings = self.data.get("settings") or {}
        rows = settings.get("batch_rows") or 1
        copies = max(settings.get("num_beams") or 1, settings.get("num_return_sequences") or 1)
        return int(max(len(self.data.get("sequences") or ()), rows * copies))

    def merge(self, data: Mapping[str, Any]) -> None:
        """Add what a record says; the newest word counts."""
        settings = {**self.data.get("settings", {}), **(data.get("settings") or {})}
        self.data.update(data)
        if "child" in data:
            self.data.setdefault("children", []).append(data["child"])
        self.data["settings"] = settings

    def mark(self, point: int, time: int) -> None:
        """Take note of the moment it passed a point."""
        self.marks.setdefault(point, []).append(time)

    @property
    def under_way(self) -> bool:
        """Whether it has arrived and not ended."""
        return self.arrived is not None and self.finished is None and not (self.told or self.given_out)

    def has_told(self, stream: Stream | None, ended: bool) -> bool:
        """Whether this side has said its last word, asked once a take; `ended` if its process has.

        A finished one is held back until the next take: its last device time or detail may come after it, and
        so may the first word of its other side.
        """
        if ended:
            self.told = True
        elif self.finished is not None:
            self.takes_since_finished += 1
            here = self.arrived is not None and self.steps_are_here(stream)
            self.told = self.takes_since_finished > (1 if here else _PATIENCE)
        return self.told

    def steps_are_here(self, stream: Stream | None) -> bool:
        """Whether every step up to its last one has come in; True where its last one is not known."""
        first, last = self.first_step, self.last_step
        if last is None and self.owns_stream and self.data.get("steps"):
            first, last = 0, int(self.data["steps"]) - 1
        if first is None or last is None:
            return True
        if stream is None:
            return False
        return all(index in stream.times for index in range(first, last + 1))

    def span(self, stream: Stream | None) -> Span | None:
        """Its first and last step, as far as they came in."""
        if stream is None or not stream.times:
            return None
        first, last = self.first_step, self.last_step
        if first is None and self.owns_stream:
            first = stream.first_index
        if last is None:
            last = stream.last_index
        if first is None or last is None or last < first:
            return None
        return first, last

    def yields(self, span: Span) -> dict[int, int]:
        """Tokens a sequence by step, where not one: none where it was away."""
        away = dict.fromkeys((step for step in self.away() if span[0] <= step <= span[1]), 0)
        return dict(sorted({**away, **self.yielded}.items()))

    def tokens_by_step(self, span: Span, outputs: list[int | None]) -> Ints:
        """Tokens that its sequences gave out in each step; a sequence that has ended gives none."""
        steps = range(span[0], span[1] + 1)
        total = np.cumsum([self.yielded.get(index, 1) for index in steps], dtype=np.int64)
        given = np.zeros(len(total), np.int64)
        for output in outputs or [None]:
            mine = total if output is None else np.minimum(total, output)
            given += np.diff(mine, prepend=0)
        return given
