"""Takes what the processes of a run have recorded, again and again, and writes out what is finished.

One turn: look who is alive, read what is new, assemble, write, and only then delete the segments that are
used up: whatever happens in between, the records are in a file.
"""

from __future__ import annotations

import time
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path

from phasetrace.assemble.assembler import Assembler
from phasetrace.assemble.spool import SegmentInfo, read_segment
from phasetrace.errors import TraceFormatError
from phasetrace.model import Recording, Samples
from phasetrace.supervise.outlets import Outlet
from phasetrace.supervise.processes import User, is_alive
from phasetrace.supervise.sampling import Sampler
from phasetrace_agent import layout

MOST_KEPT = 32  # segments that are read and kept all the same


@dataclass(slots=True)
class Segment:
    """A file of the spool, and how far it has been read."""

    info: SegmentInfo
    offset: int = layout.HEADER_BYTES
    used_up: bool = False


class Drain:
    """Reads one spool into one outlet. The caller decides when: `turn` again and again, then `close`."""

    def __init__(
        self, spool: Path, outlet: Outlet, left_off: Set[int] = frozenset(), keep: bool = False
    ) -> None:
        self._spool = spool
        self._outlet = outlet
        self._left_off = left_off  # processes that run on and have stopped recording
        self._keep = keep  # the files stay: for `recover`, which can be asked again
        self._assembler = Assembler()
        self._segments: dict[Path, Segment] = {}
        self._running: dict[str, SegmentInfo] = {}  # by process
        self._infos: dict[str, SegmentInfo] = {}
        self._sampler = Sampler()
        self.unreadable: dict[Path, TraceFormatError] = {}

    @property
    def found(self) -> int:
        """How many segments are there."""
        return len(self._segments)

    @property
    def running(self) -> int:
        """How many recorded processes had not ended at the last turn."""
        return len(self._running)

    @property
    def under_way(self) -> int:
        """How many requests had not ended at the last turn."""
        return self._assembler.under_way

    def turn(self) -> None:
        """Take in what is there now."""
        self._find_segments()
        ended = {key for key, info in self._running.items() if self._has_ended(info)}  # asked before reading
        for path, segment in self._segments.items():
            if not segment.used_up:
                self._read(path, segment, live=segment.info.process in self._running.keys() - ended)
        self._assembler.processes_ended(ended)
        for key in ended:
            del self._running[key]
        self._sampler.look(User(key, i.pid, i.started) for key, i in self._running.items())
        self._write(self._assembler.take(), self._sampler.take())
        self._delete_used_up()

    def close(self) -> None:
        """Take in the rest. What still runs is written as far as it has come, and its files stay."""
        self.turn()
        self._count_lost()
        self._write(self._assembler.close(), self._sampler.take(all_of_it=True))

    def _find_segments(self) -> None:
        for path in sorted(self._spool.glob("*.seg")):
            if path in self._segments:
                continue
            try:
                info, _, _ = read_segment(path, layout.SEGMENT_BYTES)
            except TraceFormatError as error:  # not yet written, or foreign
                self.unreadable[path] = error
                continue
            except OSError:
                continue
            self.unreadable.pop(path, None)
            self._segments[path] = Segment(info)
            if info.process not in self._infos:
                self._running[info.process] = self._infos[info.process] = info

    def _has_ended(self, info: SegmentInfo) -> bool:
        replaced = any(o.pid == info.pid and o.execs > info.execs for o in self._running.values())
        return replaced or info.pid in self._left_off or not is_alive(info.pid, info.started)

    def _read(self, path: Path, segment: Segment, live: bool) -> None:
        try:
            info, records, segment.offset = read_segment(path, segment.offset, live)
        except FileNotFoundError:  # somebody else cleaned up
            segment.used_up = True
            return
        self._assembler.feed(info, records)
        segment.used_up = info.sealed or not live

    def _write(self, recording: Recording, samples: tuple[Samples, ...]) -> None:
        recording = replace(recording, samples=samples)
        if recording != Recording():
            self._outlet.write(recording)

    def _count_lost(self) -> None:
        for path in self._spool.glob("*.lost"):
            key, lost, why = layout.parse_lost(path.name)
            trouble = layout.encode_blob(0, 0, 0, {"lost": lost, "why": why})
            self._assembler.feed(self._info_of(f"{key:016x}"), [(layout.TROUBLE, trouble)])

    def _info_of(self, process: str) -> SegmentInfo:
        """Who that process is; of one that could write no segment only the key is known."""
        known = self._infos.get(process)
        return known or SegmentInfo(process, 0, 0, 0, 0, time.monotonic_ns(), time.time_ns())

    def _delete_used_up(self) -> None:
        """Delete what is in the trace now. Of a request that goes on, all segments stay for `recover`."""
        if self._keep:
            return
        used_up = [path for path, segment in self._segments.items() if segment.used_up]
        needed = [path for path in used_up if self._assembler.holds_back(self._segments[path].info.process)]
        spare = [path for path in used_up if path not in needed]
        for path in [*spare, *needed[:-MOST_KEPT]]:
            path.unlink(missing_ok=True)
            del self._segments[path]
