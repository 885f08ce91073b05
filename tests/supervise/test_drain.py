"""The drain takes what is new, writes what is finished, and deletes only what is written."""

import os
from pathlib import Path

import pytest

from phasetrace.model import RequestStatus
from phasetrace.supervise.drain import Drain
from phasetrace.supervise.merge import Merged
from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool

MS = 1_000_000
FILLING = 20_000  # steps that fill a segment


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    """A recorder of this process, which is alive for the drain."""
    return Recorder(Spool(str(tmp_path)))


def begin(recorder: Recorder) -> int:
    request: int = recorder.next_id()
    recorder.arrived(request, MS, {"engine": "transformers", "mode": "greedy"})
    return request


def steps(recorder: Recorder, request: int, count: int) -> None:
    for index in range(count):
        joined = (request,) if index == 0 else ()
        recorder.step(request, index, index * MS, (4,), ((index + 1) * MS,), joined)


def end(recorder: Recorder, request: int, time: int) -> None:
    recorder.finished(request, time, {"sequences": [{"prompt": 1, "output": 1, "reason": "stop"}]})


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.seg"))


def test_finished_request_is_written_while_the_process_goes_on(tmp_path: Path, recorder: Recorder) -> None:
    found = Merged()
    drain = Drain(tmp_path, found)
    request = begin(recorder)
    steps(recorder, request, 3)
    end(recorder, request, 4 * MS)
    steps(recorder, begin(recorder), 3)
    for _ in range(12):
        drain.turn()
    assert [r.status for r in found.recording.requests] == [RequestStatus.OK]
    assert drain.running == 1
    assert len(segments(tmp_path)) == 1
    drain.close()
    assert [r.status for r in found.recording.requests] == [RequestStatus.OK, RequestStatus.CUT_OFF]


def test_segments_of_a_request_that_goes_on_stay(tmp_path: Path, recorder: Recorder) -> None:
    drain = Drain(tmp_path, Merged())
    request = begin(recorder)
    steps(recorder, request, FILLING)
    drain.turn()
    assert len(segments(tmp_path)) == 2
    Drain(tmp_path, again := Merged(), keep=True).close()
    assert len(again.recording.requests) == 1
    end(recorder, request, FILLING * MS)
    begin(recorder)  # the newest record is left for later, so there has to be a newer one
    for _ in range(12):
        drain.turn()
    assert len(segments(tmp_path)) == 1


def test_process_that_has_left_off_is_read_to_its_end(tmp_path: Path, recorder: Recorder) -> None:
    drain = Drain(tmp_path, found := Merged(), left_off={os.getpid()})
    request = begin(recorder)
    steps(recorder, request, 3)
    end(recorder, request, 4 * MS)
    drain.turn()
    assert [r.status for r in found.recording.requests] == [RequestStatus.OK]
    assert (drain.running, segments(tmp_path)) == (0, [])


def test_asked_to_keep_it_deletes_nothing(tmp_path: Path, recorder: Recorder) -> None:
    begin(recorder)
    Drain(tmp_path, Merged(), left_off={os.getpid()}, keep=True).close()
    assert len(segments(tmp_path)) == 1


def test_what_could_not_be_written_is_counted(tmp_path: Path) -> None:
    (tmp_path / layout.lost_name(0xA1, 17, "ENOSPC")).touch()
    Drain(tmp_path, found := Merged()).close()
    (process,) = found.recording.processes
    assert (process.key, process.lost_records) == (f"{0xA1:016x}", 17)


def test_foreign_and_unfinished_files_are_passed_over(tmp_path: Path, recorder: Recorder) -> None:
    (tmp_path / "0000.seg").write_bytes(b"")
    (tmp_path / "0001.seg").write_bytes(bytes(layout.SEGMENT_BYTES))
    begin(recorder)
    drain = Drain(tmp_path, found := Merged(), left_off={os.getpid()})
    drain.close()
    assert len(found.recording.requests) == 1
    assert len(drain.unreadable) == 2
