"""The spool keeps every committed record, and the application notices nothing of what goes wrong."""

import errno
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from phasetrace.assemble.spool import read_segment
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


def test_eight_threads_lose_and_tear_nothing(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    each = 100_000

    def write(stream: int) -> None:
        for index in range(each):
            recorder.step(stream, index, 1, (4,), (index,), (stream,) if index % 7 == 0 else ())

    threads = [threading.Thread(target=write, args=(stream,)) for stream in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found: Counter[int] = Counter()
    for path in tmp_path.glob("*.seg"):
        info, records, _ = read_segment(path)
        assert info.torn == 0
        for kind, payload in records:
            if kind == layout.STEP:
                step = layout.decode_step(payload)
                assert step["ends"] == [step["index"]]
                assert step["joined"] == ([step["stream"]] if step["index"] % 7 == 0 else [])
                found[step["stream"]] += 1
    assert found == dict.fromkeys(range(8), each)
    assert not list(tmp_path.glob("*.lost"))


def test_full_segments_are_sealed_and_the_last_is_not(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    for request in range(70_000):
        recorder.mark(request, 1, 1)
    infos = sorted((read_segment(path)[0] for path in tmp_path.glob("*.seg")), key=lambda info: info.number)
    assert [info.number for info in infos] == list(range(len(infos)))
    assert [info.sealed for info in infos] == [True] * (len(infos) - 1) + [False]
    assert len(infos) > 2
    assert {path.stat().st_size for path in tmp_path.glob("*.seg")} == {layout.SEGMENT_BYTES}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.seg")} == {0o600}


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


def test_a_full_disk(small_disk: Path) -> None:
    recorder = Recorder(Spool(str(small_disk)))
    for request in range(200_000):
        recorder.mark(request, 1, 1)
    recorder.at_exit()
    kept = len(marks(small_disk))
    assert kept > 60_000
    assert lost(small_disk) == 200_000 - kept
    assert all("ENOSPC" in path.name for path in small_disk.glob("*.lost"))


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


def test_what_is_not_well_formed_is_told_once_and_tears_nothing(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    for index in range(3):
        recorder.step(1, index, 5, (1, 2, 3), (10, 20, -1))
        recorder.step(1, index, 5, (1,), (10,))
        recorder.detail(1, {"not json": object()})
        recorder.mark("one", 1, 1)  # type: ignore[arg-type]
    kinds = Counter(kind for kind, _ in read_spool(tmp_path))
    assert kinds[layout.STEP] == 3
    assert kinds[layout.TROUBLE] == 3
    assert len(list(tmp_path.glob("*.seg"))) == 1


KILLED = """
import os
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
for index in range(10**9):
    recorder.step(1, index, 1, (1, 2), (2, 3))
    os.write(1, b"%8d" % index)
"""


@pytest.mark.parametrize("end", ["KILL", "TERM", "ABRT"])
def test_a_killed_process_has_kept_every_committed_record(recorded: Run, end: str) -> None:
    with subprocess.Popen(
        [recorded.python, "-c", KILLED], env=recorded.environment(), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        process.stdout.read(8 * 20_000)
        subprocess.run(["kill", f"-{end}", str(process.pid)], check=True)
        rest = process.stdout.read()
    told = 20_000 + len(rest) // 8
    steps = [
        layout.decode_step(p)["index"]
        for _, records in recorded.segments()
        for k, p in records
        if k == layout.STEP
    ]
    assert sorted(steps) == list(range(len(steps)))
    assert len(steps) >= told


FORKING = """
import os, threading
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
recorder.facts(2, 1, {"engine": "stand-in"})
stop = threading.Event()

def write():
    while not stop.is_set():
        recorder.mark(os.getpid(), 1, 1)

threads = [threading.Thread(target=write) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(20):
    pid = os.fork()
    if not pid:
        for _ in range(200):
            recorder.mark(os.getpid(), 1, 1)
        os._exit(0)
    os.waitpid(pid, 0)
stop.set()
"""


def test_children_forked_while_threads_record_write_only_their_own(recorded: Run) -> None:
    done = recorded("-W", "ignore", "-c", FORKING)  # 3.12 warns of any fork beside threads
    assert (done.returncode, done.stderr) == (0, "")
    found = recorded.marks()
    assert len(found) == 21
    assert all(ids == {pid} for pid, ids in found.items())
    assert all(info.torn == 0 for info, _ in recorded.segments())
    engines = [facts for facts in recorded.blobs(layout.FACTS) if "engine" in facts]
    assert len(engines) >= 21  # a child's reader has to learn what the parent said


CLOSES_DESCRIPTORS = """
import os, sys
from phasetrace_agent import bootstrap
recorder = bootstrap.recorder()
recorder.mark(1, 1, 1)
os.closerange(3, 256)
pipes = [os.pipe() for _ in range(20)]
for request in range(100_000):
    recorder.mark(request, 1, 1)
for read, write in pipes:
    os.write(write, b"x")
    assert os.read(read, 1) == b"x"
if not os.fork():
    for read, write in pipes:
        os.write(write, b"x")
        assert os.read(read, 1) == b"x"
    os._exit(0)
assert os.wait()[1] == 0
"""


def test_an_application_that_closes_all_descriptors_keeps_those_it_opens_then(recorded: Run) -> None:
    done = recorded("-c", CLOSES_DESCRIPTORS)
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(kind == layout.MARK for _, records in recorded.segments() for kind, _ in records) == 100_001


def test_the_wall_clock_is_taken_again_now_and_then(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    for second in range(60):
        recorder.step(1, second, second * 10**9, (1,), (second * 10**9 + 1,))
    clocks = [layout.decode_clock(payload) for kind, payload in read_spool(tmp_path) if kind == layout.CLOCK]
    assert 10 <= len(clocks) <= 13
    assert all(abs(wall - clocks[0][1]) < 60 * 10**9 for _, wall in clocks)


def test_ids_are_not_given_twice(tmp_path: Path) -> None:
    recorder = Recorder(Spool(str(tmp_path)))
    assert [recorder.next_id() for _ in range(3)] == [1, 2, 3]
    assert not os.listdir(tmp_path)
