"""Writes the records of steps, which come by the thousand while an engine runs: the hot path.

Each is packed straight into the spool by one call of one `Struct`. What can be known beforehand is.
"""

from __future__ import annotations

import struct

from . import clock, layout
from .spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_CLOCK_EVERY = 5_000_000_000  # wall clocks are stepped and slewed: the median of many pairs is sound
_SAMPLE_MASK = 31  # one step in 32 tells what its record cost
_SAMPLES_TOLD = 32  # samples from one telling to the next; the first comes after 4
_STEP, _SEGMENT_BYTES, _ECHO = layout.STEP, layout.SEGMENT_BYTES, layout.ECHO
_pack_plain, _PLAIN_BYTES = layout.PLAIN_STEP.pack_into, layout.PLAIN_STEP_BYTES
_PLAIN_ECHO, _PLAIN_ROOM = _PLAIN_BYTES ^ _ECHO, _SEGMENT_BYTES - _PLAIN_BYTES
_write_length = struct.Struct("<I").pack_into


class StepWriter:
    """The part of a recorder that writes steps, clocks with them, and what a step's record cost."""

    def __init__(self, spool: Spool):
        self._spool = spool
        self._clock_due = 0
        self._samples: list[int] = []
        self._layouts: dict[tuple[int, int], tuple[int, Callable[..., None]]] = {}

    def step(
        self,
        stream: int,
        index: int,
        begin: int,
        codes: Sequence[int],
        ends: Sequence[int],
        joined: Sequence[int] = (),
        left: Sequence[int] = (),
        scheduled: Sequence[tuple[int, int]] = (),
        yielded: Sequence[tuple[int, int]] = (),
        number: int = 0,
    ) -> None:
        """One step of an engine, as `layout.encode_step` describes it: packed straight into the spool."""
        segment = None
        at = 0
        try:
            if begin >= self._clock_due:
                self._record_clock(begin)
            counts: Sequence[int] = ()
            if joined or left or scheduled or yielded:
                counts = [*joined, *left]
                for pair in scheduled:
                    counts += pair
                for pair in yielded:
                    counts += pair
            segments = len(codes)
            shape = (segments, len(counts))
            try:
                length, pack = self._layouts[shape]
            except KeyError:
                length, pack = self._new_layout(shape)
            spool = self._spool
            free = spool.free  # a fork in between replaces it
            try:
                segment = free.pop()
            except IndexError:
                segment = spool.fresh(length)
            else:
                if segment.used + length > _SEGMENT_BYTES:
                    segment = spool.replace(segment, length)
            if segment is None:
                return
            at = segment.used
            pack(
                segment.map, at + 4, _STEP, stream, index, begin,
                segments, len(joined), len(left), len(scheduled), len(yielded), number & 0xFFFF,
                *ends, *codes, *counts, length ^ _ECHO,
            )  # fmt: skip
            _write_length(segment.map, at, length)
            segment.used = at + length
            free.append(segment)
            if not index & _SAMPLE_MASK:
                segment = None
                self._sample(clock.now() - ends[-1])
        except BaseException as error:
            if segment is not None:
                self._spool.give_up(segment, at)
            if not isinstance(error, Exception):
                raise
            self.failed("recorder.step", error)

    def plain_step(
        self,
        stream: int,
        index: int,
        begin: int,
        codes: int,
        first: int,
        second: int,
        third: int,
        end: int,
        number: int,
    ) -> None:
        """A step of four segments in which nobody came, went, computed or got other than one token.

        `codes` holds the four in one number, the first one lowest.
        """
        segment = None
        at = 0
        try:
            if begin >= self._clock_due:
                self._record_clock(begin)
            free = self._spool.free  # a fork in between replaces it
            try:
                segment = free.pop()
            except IndexError:
                segment = self._spool.fresh(_PLAIN_BYTES)
            else:
                if segment.used > _PLAIN_ROOM:
                    segment = self._spool.replace(segment, _PLAIN_BYTES)
            if segment is None:
                return
            at, memory = segment.used, segment.map
            _pack_plain(
                memory, at + 4, _STEP, stream, index, begin, 4, (number & 0xFFFF) << 16,
                first, second, third, end, codes, _PLAIN_ECHO,
            )  # fmt: skip
            _write_length(memory, at, _PLAIN_BYTES)
            segment.used = at + _PLAIN_BYTES
            free.append(segment)
            if not index & _SAMPLE_MASK:
                segment = None
                self._sample(clock.now() - end)
        except BaseException as error:
            if segment is not None:
                self._spool.give_up(segment, at)
            if not isinstance(error, Exception):
                raise
            self.failed("recorder.step", error)

    def _sample(self, cost: int) -> None:
        """From a step's end until its record stood.

        An engine empties the caches between steps, so this is several times what a loop of calls shows.
        """
        samples = self._samples
        samples.append(cost)
        if len(samples) == 4 or not len(samples) % _SAMPLES_TOLD:
            recent = sorted(samples[-_SAMPLES_TOLD:])
            self.facts(layout.PROCESS, 0, {"step_record_ns": recent[len(recent) // 2]})
            del samples[:-_SAMPLES_TOLD]

    def _record_clock(self, time: int) -> None:
        self._clock_due = time + _CLOCK_EVERY
        self._spool.write(layout.CLOCK, layout.encode_clock(*clock.pair()))

    def _new_layout(self, shape: tuple[int, int]) -> tuple[int, Callable[..., None]]:
        if len(self._layouts) > 4096:  # a batch of ever new sizes
            self._layouts.clear()
        length, record = layout.step_record(*shape)
        self._layouts[shape] = length, record.pack_into
        return self._layouts[shape]

    def facts(self, scope: int, key: int, data: Mapping[str, Any]) -> None:
        """What holds for the process, an engine or a model."""
        raise NotImplementedError

    def failed(self, where: str, error: BaseException) -> None:
        """Something of ours failed."""
        raise NotImplementedError
