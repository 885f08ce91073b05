"""`phasetrace recover`: the trace of a run whose supervisor could not finish it.

A run's records are in three places: the trace, as far as it was written; `rest.json`, what could not be
written there; and the spool. The three overlap a little, for a segment is deleted only after it was written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from phasetrace.errors import NothingRecordedError, UsageError
from phasetrace.supervise import output as outputs
from phasetrace.supervise.folder import Folder, Note, open_folder

if TYPE_CHECKING:
    from phasetrace.model import Recording

NOBODY = 0  # no process has this pid: the run is over


def recover(path: Path, output: Path | None = None, quiet: bool = False) -> Path:
    """Write the trace of the run that left the folder `path`; gives the trace's path. The folder stays.

    Raises:
        UsageError: no folder of a run, one still recording, or an output that cannot be written.
        NothingRecordedError: nothing is in it.
    """
    from phasetrace.model import Recording
    from phasetrace.supervise import summary

    folder = open_folder(path)
    note = folder.note()
    if note and note.is_running:
        raise UsageError(f"{path} is still recording (process {note.pid}): its trace will be {note.output}")
    target = _target(output, note)
    outputs.check(target)
    recording, running = _gather(folder, note)
    if recording == Recording():
        raise NothingRecordedError(f"{path} holds no records")
    if note and target == note.trace:  # what it holds is in the recording: no need to keep it as another file
        draft = target.with_name(f"{target.name}.recovered")
        _write(draft, recording)
        draft.replace(target)
        folder.leave_note(target, NOBODY, begun=True)
    else:
        _write(target, recording)
        if output is None and note:
            folder.leave_note(target, NOBODY, begun=True)
    advice = f"{folder.base} can be deleted now"
    if running:
        advice = f"recorded processes that still run: {running}; recover again when they have ended"
    print(f"phasetrace: wrote {target}; {advice}", file=sys.stderr)
    if not quiet:
        sys.stderr.write(summary.of_trace(target))
    return target


def _target(output: Path | None, note: Note | None) -> Path:
    if output is not None:
        return output
    if note is None:
        raise UsageError("it is not known where this run's trace was to go: say it with -o")
    return note.trace or note.output


def _write(path: Path, recording: Recording) -> None:
    from phasetrace.emit.trace_file import TraceFile

    trace = TraceFile(path)
    trace.write(recording)
    trace.close()


def _gather(folder: Folder, note: Note | None) -> tuple[Recording, int]:
    """All that is known of the run, and how many of its processes still run."""
    from phasetrace.emit.trace_file import pieces
    from phasetrace.model import Recording
    from phasetrace.read import read
    from phasetrace.supervise.drain import Drain
    from phasetrace.supervise.merge import Merged, merge

    written = Recording()
    for path in (note.trace if note else None, *pieces(folder.rest)):
        if path is not None and path.stat().st_size:
            written = merge(written, read(path))
    spool = Merged()
    drain = Drain(folder.spool, spool, keep=True)
    drain.close()
    if drain.unreadable and not drain.found:
        raise next(iter(drain.unreadable.values()))
    return merge(written, spool.recording), drain.running
