"""Writes records into the spool: a segment is leased for one record, so threads need no lock."""

from __future__ import annotations

import errno
import os
from collections import deque
from itertools import count

from . import clock, layout, signals
from .losses import Losses
from .segment import Identity, Segment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

CAP_BYTES = 256 << 20  # of segments that nobody has drained
ROOM = layout.SEGMENT_BYTES - layout.HEADER_BYTES
TRY_AGAIN = 256  # lost records until a new segment is tried again


class Spool:
    """The segments of this process in one folder.

    A thread pops a segment, writes one record and appends it again: both are atomic and take 50 ns. A
    thread that is interrupted in between leaves its segment behind, and the reader takes what was committed
    to it.
    """

    def __init__(self, folder: str, execs: int = 0, cap_bytes: int = CAP_BYTES):
        self.folder = folder
        self.free: deque[Segment] = deque()
        self.on_first_segment: Callable[[], list[tuple[int, bytes]]] = list
        self._execs = execs
        self._cap = max(1, cap_bytes // layout.SEGMENT_BYTES)
        self._begin()

    def _begin(self) -> None:
        self.identity = Identity(self._execs)
        self.losses = Losses(self.folder, self.identity.key)
        self._numbers = count()
        self._sealed: deque[str] = deque()
        self._open = 0
        self._introduced = False

    def forked(self) -> None:
        """In a forked child: leave the parent's segments alone; the first record opens an own one."""
        inherited, self.free = self.free, deque()
        self._begin()
        for segment in inherited:
            segment.release()

    def write(self, kind: int, payload: bytes) -> bool:
        """Write one record; False when it is lost, and counted."""
        length = layout.frame_bytes(len(payload))
        free = self.free  # a fork in between replaces it
        segment = self.lease(length)
        if segment is None:
            return False
        at = segment.used
        try:
            segment.append(kind, payload, length)
            free.append(segment)
        except BaseException:  # of a signal handler
            self.give_up(segment, at)
            raise
        return True

    def lease(self, length: int) -> Segment | None:
        """A segment with room for such a record, for this thread alone; None when the record is lost."""
        try:
            segment = self.free.pop()
        except IndexError:
            return self.fresh(length)
        if segment.used + length <= layout.SEGMENT_BYTES:
            return segment
        return self.replace(segment, length)

    def replace(self, full: Segment, length: int) -> Segment | None:
        """Seal a segment that is full for this record, and open the next."""
        if length > ROOM:
            self.free.append(full)
            return self._too_large()
        full.seal()
        self._sealed.append(full.path)
        self._open -= 1
        return self.fresh(length)

    def fresh(self, length: int) -> Segment | None:
        """A new segment; None, and one record lost, when there can be none."""
        if length > ROOM:
            return self._too_large()
        losses = self.losses
        if losses.pending % TRY_AGAIN:
            losses.add(losses.why)
            return None
        try:
            segment = self._new_segment()
        except OSError as error:
            signals.pass_on(error)  # a timeout is one of these
            losses.add(errno.errorcode.get(error.errno or 0, "OSError"))
            return None
        if segment is None:
            losses.add("cap")
            return None
        if segment.used + length > layout.SEGMENT_BYTES:
            self.free.append(segment)
            return self._too_large()
        return segment

    def give_up(self, segment: Segment, at: int) -> None:
        """Take a segment back whose record, begun at `at`, failed half-way.

        One whose record is complete may have been given back already, and two threads must not share it.
        """
        if segment.used != at:
            return
        rest = min(len(segment.map) - at, ROOM)
        segment.map[at : at + rest] = bytes(rest)
        self.free.append(segment)

    def _too_large(self) -> Segment | None:
        self.losses.add("too-large")
        lost = self.losses.take()
        if not self.write(layout.TROUBLE, _lost(lost, "too-large")):
            for _ in range(lost):
                self.losses.add("too-large")
        return None

    def _new_segment(self) -> Segment | None:
        while self._sealed and self._open + len(self._sealed) >= self._cap:
            if os.path.exists(self._sealed[0]):
                return None
            self._sealed.popleft()  # drained: the supervisor has unlinked it
        segment = Segment.create(self.folder, self.identity, next(self._numbers))
        self._open += 1
        records = []
        if not self._introduced:
            self._introduced = True
            records = self.on_first_segment()
        if self.losses.pending:
            why = self.losses.why
            records.append((layout.TROUBLE, _lost(self.losses.take(), why)))
        for kind, payload in records:
            segment.append(kind, payload, layout.frame_bytes(len(payload)))
        return segment


def _lost(count: int, why: str) -> bytes:
    return layout.encode_blob(0, 0, clock.now(), {"lost": count, "why": why})
