"""Reads the committed records of one spool segment.

The application writes a record's length word last, so a record without it is not there yet. While a process
still writes, the newest record of a segment is left for the next read: its successor proves it complete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from phasetrace.errors import TraceFormatError
from phasetrace_agent import layout

Record = tuple[int, bytes]  # kind, payload (zero padding at its end may be left)

_SHORTEST = layout.FRAME_BYTES
_ALIGN = 8


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """Who wrote a segment, and what this read of it could not use."""

    process: str  # 16 hex digits; a process that replaced itself by `exec` counts as a new one
    pid: int
    parent_pid: int
    number: int  # of the segment in its process
    execs: int  # how often this pid had replaced itself by `exec`
    monotonic_ns: int
    wall_ns: int
    torn: int = 0  # records that were begun and never completed
    started: int = 0  # start of the process in clock ticks since boot, 0 where unknown; tells a reused pid
    sealed: bool = False  # its writer adds nothing more


def read_segment(
    path: Path | str, offset: int = layout.HEADER_BYTES, live: bool = False
) -> tuple[SegmentInfo, list[Record], int]:
    """Read the records of `path` from `offset` on, and say where to go on next time.

    Args:
        path: the segment.
        offset: where the last read ended.
        live: whether its process may still write; the newest record is then left for later.

    Raises:
        TraceFormatError: not a segment, or one of another version of phasetrace.
    """
    with open(path, "rb", buffering=0) as file:
        header = file.read(layout.HEADER_BYTES)
        file.seek(offset)
        data = file.read()
    info = _info(path, header)  # read before the records: once sealed, they are all there
    found, torn, end = _records(data, live and not info.sealed)
    return replace(info, torn=torn), found, offset + end


def _info(path: Path | str, header: bytes) -> SegmentInfo:
    if len(header) < layout.HEADER_BYTES or not header.startswith(layout.MAGIC):
        raise TraceFormatError(f"{path} is not a spool segment of phasetrace")
    unpacked = layout.SEGMENT_HEADER.unpack_from(header)
    _, version, _, pid, parent_pid, number, execs, key, monotonic, wall = unpacked
    if version != layout.VERSION:
        raise TraceFormatError(
            f"{path} was written by another version of phasetrace "
            f"(spool layout {version}, this one reads {layout.VERSION}): use that version's `recover`"
        )
    (started,) = layout.PROCESS_START.unpack_from(header, layout.SEGMENT_HEADER.size)
    (sealed,) = layout.SEALED.unpack_from(header, layout.SEALED_AT)
    return SegmentInfo(
        f"{key:016x}",
        pid,
        parent_pid,
        number,
        execs,
        monotonic,
        wall,
        started=started,
        sealed=bool(sealed),
    )


def _records(data: bytes, live: bool) -> tuple[list[Record], int, int]:
    """The records in `data`, how many are torn, and where the first byte lies that was not used."""
    found: list[Record] = []
    torn = 0
    at = 0
    while True:
        length = _length(data, at)
        if not length:
            return found, torn, at
        complete = _SHORTEST <= length <= len(data) - at and length % _ALIGN == 0
        if live and not (complete and _length(data, at + length)):
            return found, torn, at
        if not complete:  # where the next one would begin is unknown: the rest is lost
            return found, torn + 1, len(data)
        end = at + length
        if _intact(data, end, length):
            kind = data[at + 4]
            found.append((kind, data[at + layout.RECORD_HEAD.size : end - layout.RECORD_TAIL.size]))
        else:
            torn += 1
        at = end


def _length(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _intact(data: bytes, end: int, length: int) -> bool:
    zero, echo = layout.RECORD_TAIL.unpack_from(data, end - layout.RECORD_TAIL.size)
    return bool(zero == 0 and echo == length ^ layout.ECHO)
