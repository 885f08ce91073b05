"""One file of the spool, mapped into memory: what is written outlives the process, however that ends."""

from __future__ import annotations

import errno
import mmap
import os
import struct
import sys

from . import clock, layout, signals

_length = struct.Struct("<I").pack_into
_head = struct.Struct("<B3x").pack_into
_tail = layout.RECORD_TAIL.pack_into

# Maps whose descriptor the application has closed behind our back. Python closes it once more when a map
# goes, and by then that number may be a socket of the application, so these never go.
_kept: list[mmap.mmap] = []


class Identity:
    """Which process writes: taken anew in a forked child, since its pid and key are its own."""

    def __init__(self, execs: int):
        self.pid = os.getpid()
        self.parent = os.getppid()
        self.key = int.from_bytes(os.urandom(8), "little")
        self.execs = execs


class Segment:
    """A segment of the spool and how far it is written; used by one thread at a time."""

    __slots__ = ("map", "path", "used")

    def __init__(self, path: str, map: mmap.mmap):
        self.path = path
        self.map = map
        self.used = layout.HEADER_BYTES

    @classmethod
    def create(cls, folder: str, me: Identity, number: int) -> Segment:
        """A new file. Raises OSError where there is no room or no right to."""
        path = os.path.join(folder, os.urandom(8).hex() + ".seg")
        new = path + ".new"  # until it has its header: a reader never meets half of one
        try:
            file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                # Allocated before it is mapped: a sparse map kills the process by SIGBUS when space runs out.
                _allocate(file)
                if sys.version_info >= (3, 13):
                    memory = mmap.mmap(file, layout.SEGMENT_BYTES, trackfd=False)
                else:
                    memory = mmap.mmap(file, layout.SEGMENT_BYTES)
            finally:
                os.close(file)
            fields = (layout.HEADER_BYTES, me.pid, me.parent, number, me.execs, me.key, *clock.pair())
            layout.SEGMENT_HEADER.pack_into(memory, 0, layout.MAGIC, layout.VERSION, *fields)
            layout.PROCESS_START.pack_into(memory, layout.SEGMENT_HEADER.size, process_start())
            os.rename(new, path)
        except BaseException:
            _remove(new)
            raise
        return cls(path, memory)

    def append(self, kind: int, payload: bytes, length: int) -> None:
        """Write a record that fits, its length word last."""
        at = self.used
        end = at + length
        _head(self.map, at + 4, kind)
        self.map[at + 8 : at + 8 + len(payload)] = payload
        _tail(self.map, end - 8, 0, length ^ layout.ECHO)
        _length(self.map, at, length)
        self.used = end

    def seal(self) -> None:
        """Tell the reader that no more will come, and let go of the memory."""
        layout.SEALED.pack_into(self.map, layout.SEALED_AT, 1)
        self.release()

    def release(self) -> None:
        """Let go of the memory, unless that would close a descriptor that is not ours any more."""
        if sys.version_info < (3, 13) and not _is_open(self.path):
            _kept.append(self.map)
        del self.map


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        signals.pass_on(error)


def _allocate(file: int) -> None:
    try:
        os.posix_fallocate(file, 0, layout.SEGMENT_BYTES)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # a filesystem that has to be written to
            raise
        block = bytes(1 << 16)
        for at in range(0, layout.SEGMENT_BYTES, len(block)):
            if os.pwrite(file, block, at) != len(block):
                raise OSError(errno.ENOSPC, "no room") from None


def _is_open(path: str) -> bool:
    """Whether a descriptor of this process still is that file, which may be unlinked by now."""
    try:
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink("/proc/self/fd/" + name)
            except OSError as error:
                signals.pass_on(error)
                continue
            if target == path or target == path + " (deleted)":
                return True
    except OSError as error:
        signals.pass_on(error)
    return False


def process_start() -> int:
    """When this process started, in clock ticks since boot (0: unknown): with the pid it names a process."""
    try:
        file = os.open("/proc/self/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat = os.read(file, 1024)
        finally:
            os.close(file)
        return int(stat.rsplit(b")", 1)[1].split()[19])
    except Exception as error:
        signals.pass_on(error)
        return 0
