"""Whether a process still runs: the one meant, not another that was given its pid later."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

GONE = (b"Z", b"X")  # ended, and its parent has not looked yet
STATE, START = 0, 19  # fields of /proc/PID/stat after the name


def is_alive(pid: int, start: int) -> bool:
    """Whether process `pid` that was started at `start` (clock ticks since boot; 0: unknown) still runs."""
    return stat_fields(pid, start) is not None


def start_of(pid: int) -> int:
    """When a process was started, in clock ticks since boot; 0 where it is gone."""
    fields = _stat(pid)
    return int(fields[START]) if fields else 0


class User(NamedTuple):
    """A recorded process, by which its use of the host is looked up."""

    key: str
    pid: int
    started: int  # clock ticks since boot; 0: unknown


def stat_fields(pid: int, start: int) -> list[bytes] | None:
    """The kernel's count of a process, from its state on; None where that one is gone."""
    fields = _stat(pid)
    if fields is None or fields[STATE] in GONE or start not in (0, int(fields[START])):
        return None
    return fields


def _stat(pid: int) -> list[bytes] | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return stat[stat.rindex(b")") + 2 :].split()  # the name may hold spaces and brackets
