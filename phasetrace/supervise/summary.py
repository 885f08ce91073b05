"""What a run leaves on the terminal: phases, first finding, coverage, cost; made by reading the trace."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from phasetrace import advise, analyze
from phasetrace.collector import without_collections
from phasetrace.emit.trace_file import kept_last, pieces
from phasetrace.model import Recording, Table
from phasetrace.read import read, read_part
from phasetrace.read import recording as together
from phasetrace.render import text
from phasetrace.supervise.folder import Folder
from phasetrace.supervise.merge import merge
from phasetrace.supervise.outlets import Written
from phasetrace.supervise.seen import python_versions, why_nothing


@without_collections()
def of_run(command: Sequence[str], trace: Path, folder: Folder, written: Written) -> str:
    """The summary of a run, or why there is nothing to sum up."""
    if written.failure:
        return ""
    recording = _kept(pieces(trace)) if written.begun else Recording()
    if not recording.requests:
        why = why_nothing(command, python_versions(folder.spool), recording)
        return f"phasetrace: nothing was recorded: {why}\n"
    delivery = written.delivery
    sent = (
        f"delivered {delivery.delivered} spans to the endpoint\n" if delivery and delivery.delivered else ""
    )
    return _of(recording, pieces(trace)) + _limited(pieces(trace), written) + sent


@without_collections()
def of_trace(trace: Path) -> str:
    """The summary of a trace whose run is over."""
    recording = read(trace)
    return _of(recording, [trace]) if recording.requests else "phasetrace: the trace holds no requests\n"


def troubles(trace: Path, written: Written, still_running: int) -> list[str]:
    """What the user has to know even with --quiet, a line each."""
    failures = (
        written.failure,
        written.rest_failure,
        written.endpoint_failure,
        written.page_failure,
    )
    lines = [line for line in failures if line]
    if not written.begun and trace.exists():
        lines.append(f"{trace} is as it was: this run recorded nothing")
    if still_running:
        processes = "process that was recorded runs" if still_running == 1 else "recorded processes run"
        lines.append(f"{still_running} {processes} on; the trace has what they did so far")
    delivery = written.delivery
    if delivery is not None and delivery.undelivered:
        kept = "; the trace file has them all" if not (written.failure or written.dropped) else ""
        lines.append(f"{delivery.undelivered} spans were not delivered ({delivery.error}){kept}")
    return lines


def _kept(traces: Sequence[Path]) -> Recording:
    parts = [part for trace in traces if not isinstance(part := read_part(trace), Table)]
    return together(parts, merge)


def _limited(traces: Sequence[Path], written: Written) -> str:
    if not written.dropped:
        return ""
    kept = sum(trace.stat().st_size for trace in traces)
    return f"of {written.dropped + kept:,} bytes the newest {kept:,} were kept (--max-size)\n"


def _of(recording: Recording, traces: Sequence[Path]) -> str:
    table = analyze.step_table(recording)
    diagnosis = advise.diagnose(analyze.breakdown(recording, table), table=table)
    color = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns
    earlier = kept_last(traces[-1])
    before = str(earlier) if earlier is not None else None
    return "\n" + text.run_summary(diagnosis, [*map(str, traces)], width, color, before=before) + "\n"
