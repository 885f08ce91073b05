"""The folder of a run: what its processes load, what they record, and what `recover` needs to know.

    phasetrace-x1y2z3/
      run/        on PYTHONPATH of the command: the agent
      spool/      what is recorded and not yet written (only for us: 0700)
      rest.json   what could not be written to the trace, if anything
      run.json    where the trace goes, and whose run this is
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from phasetrace.errors import UsageError
from phasetrace.supervise.processes import is_alive, start_of

SHARED_MEMORY = Path("/dev/shm")
ROOM_BYTES = 64 << 20  # a segment is 1 MiB, and a server has tens of processes
SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Note:
    """What a run leaves for whoever recovers it."""

    output: Path
    detail: str
    pid: int  # of the supervisor
    start: int

    @property
    def is_running(self) -> bool:
        """Whether the supervisor is still at it."""
        return is_alive(self.pid, self.start)


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

    def leave_note(self, output: Path, detail: str, pid: int) -> None:
        """Write down what `recover` will need."""
        note = {"output": str(output.absolute()), "detail": detail, "pid": pid, "start": start_of(pid)}
        (self.base / "run.json").write_text(json.dumps(note))

    def note(self) -> Note:
        """Read what `leave_note` wrote."""
        try:
            note = json.loads((self.base / "run.json").read_text())
            return Note(Path(note["output"]), note["detail"], note["pid"], note["start"])
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(f"{self.base} is not the folder of a run") from None

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
    from phasetrace_agent import rundir

    place.mkdir(parents=True, exist_ok=True)
    folder = Folder(Path(tempfile.mkdtemp(prefix="phasetrace-", dir=place.absolute())))
    try:
        folder.base.chmod(0o755)  # workers that drop their privileges still have to import the agent
        folder.spool.mkdir(0o700)
        salt = os.open(folder.spool / "salt", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(salt, "wb") as file:
            file.write(secrets.token_bytes(SALT_BYTES))
        rundir.make(str(folder.run))
    except OSError:
        folder.remove()
        raise
    return folder
