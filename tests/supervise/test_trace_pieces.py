"""Real recordings, written as a run does into a trace that may not grow: each piece can be read by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from phasetrace import advise, analyze
from phasetrace.cli import inputs
from phasetrace.emit.trace_file import TraceFile
from phasetrace.model import Recording, Request
from phasetrace.read import read
from phasetrace.supervise.merge import cut
from tests.advise import recorded

FOLDER = Path(recorded.__file__).parent
TURN_NS = 200_000_000


def turns(whole: Recording) -> Iterator[Recording]:
    """The parts that the drain takes, turn by turn."""
    begin = min(int(steps.begin_ns[0]) for steps in whole.steps)
    end = max(int(steps.end_ns[-1]) for steps in whole.steps) + TURN_NS
    facts = {"processes": whole.processes, "models": whole.models}
    for low in range(begin, end + TURN_NS, TURN_NS):
        rows = [(s, np.flatnonzero((s.end_ns >= low) & (s.end_ns < low + TURN_NS))) for s in whole.steps]
        ended = [r for r in whole.requests if low <= (r.finished_ns or end) < low + TURN_NS]
        yield Recording(
            requests=tuple(ended), steps=tuple(cut(s, found) for s, found in rows if len(found)), **facts
        )
        facts = {}


def own_steps(recording: Recording, request: Request) -> list[int]:
    """When each of its steps ended."""
    first, last = request.first_step, request.last_step
    assert first is not None and last is not None
    ends = {
        s.first_index + row: int(end)
        for s in recording.steps
        if (s.process, s.stream) == (request.process, request.stream)
        for row, end in enumerate(s.end_ns)
    }
    return [ends[index] for index in range(first, last + 1)]


@pytest.mark.parametrize("name", ["prefill_interference", "preemption", "long_output", "kv_full"])
def test_each_piece_can_be_read_by_itself_and_all_together(name: str, tmp_path: Path) -> None:
    whole = read(FOLDER / f"{name}.json.gz")
    with TraceFile(tmp_path / "all.json") as file:
        for part in turns(whole):
            file.write(part)
    with TraceFile(tmp_path / "trace.json", max_size=int(1.3 * file.path.stat().st_size)) as file:
        for part in turns(whole):
            file.write(part)
    assert len(file.pieces) == 2 and not file.dropped
    cause = advise.diagnose(analyze.breakdown(whole)).cause
    for piece in map(read, file.pieces):
        assert piece.processes == whole.processes and piece.models == whole.models
        for request in piece.requests:
            assert own_steps(piece, request) == own_steps(whole, request)
        assert advise.diagnose(analyze.breakdown(piece)).cause == cause
    both = inputs.read(list(map(str, file.pieces)))
    assert {r.id: r for r in both.requests} == {r.id: r for r in whole.requests}
    assert sum(map(len, both.steps)) == sum(map(len, whole.steps))  # none twice
    assert replace(both, requests=()).processes == whole.processes
