"""Where records cannot be written the application notices nothing, and the loss is counted and told."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from phasetrace_agent import layout
from phasetrace_agent import segment as segment_module
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import TRY_AGAIN, Spool
from tests.integrations.agent import Run, read_spool


def marks(folder: Path) -> list[int]:
    return [layout.decode_mark(payload)[0] for kind, payload in read_spool(folder) if kind == layout.MARK]


def lost(folder: Path) -> int:
    """All losses told, by records and by the names of files."""
    told = [layout.decode_blob(payload)[3] for kind, payload in read_spool(folder) if kind == layout.TROUBLE]
    names = [layout.parse_lost(path.name)[1] for path in folder.glob("*.lost")]
    return sum(trouble.get("lost", 0) for trouble in told) + sum(names)


def test_beyond_the_cap_records_are_dropped_counted_and_told(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path), cap_bytes=2 * layout.SEGMENT_BYTES))
    for request in range(100_000):
        recorder.mark(request, 1, 1)
    assert len(list(tmp_path.glob("*.seg"))) == 2
    recorder.at_exit()
    kept = marks(tmp_path)
    assert kept == list(range(len(kept)))
    assert lost(tmp_path) == 100_000 - len(kept)


def test_a_drained_segment_makes_room_and_the_loss_is_told_by_a_record(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path), cap_bytes=layout.SEGMENT_BYTES))
    for request in range(40_000):
        recorder.mark(request, 1, 1)
    (full,) = tmp_path.glob("*.seg")
    kept = len(marks(tmp_path))
    full.unlink()
    for request in range(40_000, 40_000 + 2 * TRY_AGAIN):
        recorder.mark(request, 1, 1)
    assert not list(tmp_path.glob("*.lost"))
    assert kept + len(marks(tmp_path)) + lost(tmp_path) == 40_000 + 2 * TRY_AGAIN


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no right to mount a tmpfs here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.soak(100)
def test_a_full_disk(small_disk: Path) -> None:
    recorder = Recorder(Spool(str(small_disk)))
    for request in range(200_000):
        recorder.mark(request, 1, 1)
    recorder.at_exit()
    kept = len(marks(small_disk))
    assert kept > 60_000
    assert lost(small_disk) == 200_000 - kept
    names = [path.name for path in small_disk.glob("*.lost")]
    assert names
    assert all("ENOSPC" in name for name in names)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_a_disk_that_fills_and_has_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def no_room(*_: int) -> None:
        raise OSError(error, "no room")

    recorder = Recorder(Spool(str(tmp_path)))
    with monkeypatch.context() as full:
        full.setattr(segment_module.os, "posix_fallocate", no_room)
        for request in range(10):
            recorder.mark(request, 1, 1)
        assert not list(tmp_path.glob("*.seg"))
        (marker,) = tmp_path.glob("*.lost")
        assert layout.parse_lost(marker.name)[1:] == (10, errno.errorcode[error])
    for request in range(10, 10 + TRY_AGAIN):
        recorder.mark(request, 1, 1)
    assert marks(tmp_path)
    assert lost(tmp_path) + len(marks(tmp_path)) == 10 + TRY_AGAIN


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EINVAL])
def test_a_filesystem_that_cannot_allocate_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def unable(*_: int) -> None:
        raise OSError(error, "unable")

    monkeypatch.setattr(segment_module.os, "posix_fallocate", unable)
    recorder = Recorder(Spool(str(tmp_path)))
    recorder.mark(1, 1, 1)
    (path,) = tmp_path.glob("*.seg")
    assert marks(tmp_path) == [1]
    assert path.stat().st_blocks * 512 >= layout.SEGMENT_BYTES


def test_a_process_that_gives_up_its_privileges(tmp_path: Path) -> None:
    if os.getuid():
        pytest.skip("only root can give up privileges")
    code = """
import os
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
os.setuid(65534)
for request in range(5):
    recorder.mark(request, 1, 1)
    recorder.finished(request, 1, {})
print("done")
"""
    run = Run(tmp_path, Path(sys.executable))
    done = run("-c", code)
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_a_file_size_limit(tmp_path: Path) -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from phasetrace_agent import bootstrap
for request in range(5):
    bootstrap.recorder().mark(request, 1, 1)
print("done")
"""
    run = Run(tmp_path, Path(sys.executable))
    done = run("-c", code)
    assert (done.stdout, done.stderr) == ("done\n", "")
    assert lost(run.spool) == 5


@pytest.mark.parametrize("prepare", ["missing", "file", "gone"])
def test_a_folder_that_is_not_there(tmp_path: Path, prepare: str) -> None:
    folder = tmp_path / "spool"
    if prepare == "file":
        folder.touch()
    if prepare == "gone":
        folder.mkdir()
    recorder = Recorder(Spool(str(folder)))
    if prepare == "gone":
        folder.rmdir()
    for request in range(1000):
        recorder.mark(request, 1, 1)
        recorder.step(1, request, 1, (1,), (2,))
        recorder.finished(request, 1, {})
    recorder.at_exit()
    assert recorder.enabled


def test_a_read_only_folder(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no right to mount a tmpfs here: {done.stderr.strip()}")
    try:
        spool = Spool(str(place))
        recorder = Recorder(spool)
        for request in range(1000):
            recorder.mark(request, 1, 1)
        assert (spool.losses.pending, spool.losses.why) == (1000, "EROFS")
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_record_larger_than_a_segment_is_told_and_the_next_is_kept(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    recorder.mark(1, 1, 1)
    recorder.detail(1, {"huge": "x" * layout.SEGMENT_BYTES})
    recorder.mark(2, 1, 1)
    assert marks(tmp_path) == [1, 2]
    assert lost(tmp_path) == 1
