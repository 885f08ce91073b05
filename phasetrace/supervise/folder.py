"""The folder of a run: what its processes load, what they record, and what `recover` needs to know.

phasetrace-x1y2z3/
  run/        on PYTHONPATH of the command: the agent
  spool/      what is recorded and not yet written (only for us: 0700)
  rest.json   what could not be written to the trace, if anything
  run.json    where the trace goes, and whose run this is
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from phasetrace import __version__
from phasetrace.errors import UsageError
from phasetrace.supervise.processes import is_alive, start_of
from phasetrace_agent import rundir

SHARED_MEMORY = Path("/dev/shm")
ROOM_BYTES = 64 << 20  # a segment is 1 MiB, and a server has tens of processes


@dataclass(frozen=True, slots=True)
class Note:
    """What a run leaves for whoever recovers it."""

    output: Path
    inode: int | None  # of the trace, by which it is found when a later run has moved it aside
    pid: int  # of the supervisor
    start: int

    @property
    def is_running(self) -> bool:
        """Whether the supervisor is still at it."""
        return is_alive(self.pid, self.start)

    @property
    def trace(self) -> Path | None:
        """What the run has written of its trace, wherever it is now."""
        pattern = f"{glob.escape(self.output.stem)}*{glob.escape(self.output.suffix)}"
        for path in self.output.parent.glob(pattern):
            if path.stat().st_ino == self.inode:
                return path
        return None


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one run."""

    base: Path

    @property
    def run(self) -> Path:
        """What is put on PYTHONPATH."""
        return self.base / "run"

    @property
    def spool(self) -> Path:
        """Where the processes write."""
        return self.base / "spool"

    @property
    def rest(self) -> Path:
        """A trace of what could not be written where it belongs."""
        return self.base / "rest.json"

    def leave_note(self, output: Path, pid: int, begun: bool = False) -> None:
        """Write down what `recover` will need, all or nothing.

        Args:
            output: where the trace goes.
            pid: of the supervisor, or 0 when the run is over.
            begun: whether what is there is this run's; before, it may be another's.
        """
        inode = output.stat().st_ino if begun and output.exists() else None
        note = {"output": str(output.absolute()), "inode": inode, "pid": pid, "start": start_of(pid)}
        draft = self.base / "run.json.draft"
        with suppress(OSError):  # on a full disk `recover` will have to be told where the trace goes
            draft.write_text(json.dumps(note))
            draft.replace(self.base / "run.json")

    def note(self) -> Note | None:
        """Read what `leave_note` wrote, if it did."""
        try:
            note = json.loads((self.base / "run.json").read_text())
            return Note(Path(note["output"]), note["inode"], note["pid"], note["start"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remove(self) -> None:
        """Delete all of it."""
        shutil.rmtree(self.base, ignore_errors=True)


def make_folder(wanted: Path | None) -> Folder:
    """Make a run's folder: where the user says, else in memory, else in the temporary folder.

    A place that cannot be written is said and passed over, for the command is to run in any case.
    """
    failures = []
    for place in _places(wanted):
        try:
            return _make_in(place)
        except OSError as error:
            failures.append(f"{place}: {error.strerror}")
            if place == wanted:
                print(f"phasetrace: cannot spool in {failures[-1]}; using another place", file=sys.stderr)
    raise UsageError(f"no place for the recording ({'; '.join(failures)}); give one with --spool DIR")


def open_folder(path: Path) -> Folder:
    """The folder of a run that has ended, from its path or its spool's."""
    if not path.is_dir():
        raise UsageError(f"{path}: no such folder")
    folder = Folder(path.parent if path.name == "spool" else path)
    if not folder.spool.is_dir():
        raise UsageError(f"{path} is not the folder of a run: it has no spool")
    return folder


def has_room(place: Path) -> bool:
    """Whether a spool fits there."""
    try:
        room = os.statvfs(place)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize >= ROOM_BYTES and os.access(place, os.W_OK)


def _places(wanted: Path | None) -> list[Path]:
    memory = [SHARED_MEMORY] if has_room(SHARED_MEMORY) else []
    return [*([wanted] if wanted else []), *memory, Path(tempfile.gettempdir())]


def _make_in(place: Path) -> Folder:
    place.mkdir(parents=True, exist_ok=True)
    folder = Folder(Path(tempfile.mkdtemp(prefix="phasetrace-", dir=place.absolute())))
    try:
        rundir.make(folder.run, __version__)
        for shared in (folder.base, folder.run):
            shared.chmod(0o755)  # workers that drop their privileges still have to import the agent
        rundir.make_spool(folder.spool)
    except OSError:
        folder.remove()
        raise
    return folder
