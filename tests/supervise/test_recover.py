"""What a supervisor that was killed, or could not write, has left becomes the whole trace."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from phasetrace.errors import NothingRecordedError, UsageError
from phasetrace.model import Recording, RequestStatus
from phasetrace.supervise import recover
from phasetrace.supervise.folder import make_folder
from tests.supervise.fake_app import STEPS
from tests.supervise.runs import PATIENCE_S, Runs, Started, app, until


def lines(started: Started, wanted: str) -> None:
    """Read what the application says up to a line."""
    assert started.stdout is not None
    for line in started.stdout:
        if line.strip() == wanted:
            return


def assert_whole(recording: Recording, requests: int) -> None:
    """Every request once, with each of its steps once."""
    ended = [r for r in recording.requests if r.status is RequestStatus.OK]
    assert len(ended) >= requests
    assert len({r.id for r in recording.requests}) == len(recording.requests)
    rows = [
        (s.process, s.stream, s.first_index + i, int(end))
        for s in recording.steps
        for i, end in enumerate(s.end_ns)
    ]
    assert len({row[:3] for row in rows}) == len(rows)
    for request in ended:
        own = [row for row in rows if row[:2] == (request.process, request.stream)]
        assert len(own) == STEPS


@pytest.mark.soak(50)
def test_supervisor_killed_while_the_application_goes_on(runs: Runs) -> None:
    with runs.start(app("goes-on", 60)) as started:
        lines(started, "finished 60")  # long enough for some drains
        started.kill()
        lines(started, "finished 70")
    (folder,) = runs.left

    def has_all() -> bool:  # the application ends a moment after its pipe
        assert recover(folder, quiet=True) == runs.trace
        return len([r for r in runs.recording().requests if r.status is RequestStatus.OK]) >= 70

    until(has_all)
    assert_whole(runs.recording(), 70)


def test_recover_can_be_done_again(runs: Runs) -> None:
    with runs.start(app("goes-on", 60)) as started:
        lines(started, "finished 40")
        started.kill()
    (folder,) = runs.left
    recover(folder, quiet=True)
    first = runs.recording()
    recover(folder, quiet=True)
    again = runs.recording()
    assert {r.id for r in again.requests} >= {r.id for r in first.requests}
    assert list(runs.folder.glob("trace*")) == [runs.trace]
    assert_whole(again, 40)


def test_request_over_several_segments_is_recovered_whole(runs: Runs) -> None:
    steps = 40_000
    with runs.start(app("long", steps)) as started:
        lines(started, "nearly")
        until(lambda: len(list(runs.spools.glob("*/spool/*.seg"))) > 2)
        started.kill()
        started.communicate("go on\n", timeout=60)
    (folder,) = runs.left

    def ended() -> bool:  # its pipe is closed a moment before the process is gone
        recover(folder, quiet=True)
        (request,) = runs.recording().requests
        return request.status is RequestStatus.OK and request.last_step == steps - 1

    until(ended)


def test_orphan_is_recovered_when_it_has_ended(runs: Runs) -> None:
    done = runs.run(app("orphan", 8))
    assert done.returncode == 0
    assert "phasetrace recover" in done.stderr
    assert sorted(r.status for r in runs.recording().requests) == [RequestStatus.CUT_OFF, RequestStatus.OK]
    (folder,) = runs.left

    def orphan_has_ended() -> bool:
        recover(folder, quiet=True)
        return len([r for r in runs.recording().requests if r.status is RequestStatus.OK]) == 2

    until(orphan_has_ended)


@pytest.fixture
def full_disk(tmp_path: Path) -> Path:
    """A small file system that is full but for a little."""
    place = tmp_path / "full"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a small file system")
    return place


@pytest.fixture
def unmount(full_disk: Path) -> Callable[[], None]:
    return lambda: subprocess.run(["umount", full_disk], check=True).returncode and None


@pytest.mark.soak(20)
def test_trace_on_a_full_disk(runs: Runs, full_disk: Path, unmount: Callable[[], None]) -> None:
    try:
        (full_disk / "filler").write_bytes(bytes(240 << 10))
        inner = Runs(full_disk)
        words = inner.words(app("generate", 1500))
        words[words.index("--spool") + 1] = str(runs.spools)
        done = subprocess.run(words, env=runs.environment({}), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert "cannot write" in done.stderr
        (folder,) = runs.left
        recover(folder, runs.trace, quiet=True)
        assert_whole(runs.recording(), 1500)
    finally:
        unmount()


def test_no_folder_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder"):
        recover(tmp_path / "missing")
    with pytest.raises(UsageError, match="no spool"):
        recover(tmp_path)


def test_empty_spool(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    with pytest.raises(NothingRecordedError):
        recover(folder.base, tmp_path / "trace.json")


def test_run_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    folder.leave_note(tmp_path / "trace.json", os.getpid())
    with pytest.raises(UsageError, match="still recording"):
        recover(folder.base)


def test_a_trace_that_was_deleted_during_the_run(runs: Runs) -> None:
    started = runs.start(app("goes-on", 2))
    until(lambda: runs.trace.exists() and runs.trace.stat().st_size)
    runs.trace.unlink()
    out, err = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0 and "was deleted while the command ran" in err
    assert "Traceback" not in err
    recover(runs.left[0], quiet=True)
    assert len(runs.recording().requests) == out.count("finished")


def test_a_spool_that_was_deleted_during_the_run_is_said(runs: Runs) -> None:
    started = runs.start(app("goes-on", 2))
    until(lambda: runs.trace.exists() and runs.trace.stat().st_size)
    shutil.rmtree(runs.left[0])
    out, err = started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 0 and "was deleted while the command ran" in err
    assert "Traceback" not in err
    assert 0 < len(runs.recording().requests) <= out.count("finished")
