"""The trace file never overwrites, can be appended to, and is whole after each write."""

import json
import os
from pathlib import Path

import pytest

from phasetrace.emit.trace_file import TraceFile, pieces
from phasetrace.read import read
from tests.builders import generation


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_each_write_is_in_the_file_when_it_returns(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with TraceFile(path) as file:
        file.write(generation())
        first = len(lines(path))
        assert first and all(json.loads(line) for line in lines(path))
        file.write(generation(name="r2", stream=2))
        assert len(lines(path)) > first


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    for content in (b"first", b"second"):
        path.write_bytes(content)
        TraceFile(path).close()
    assert (tmp_path / "trace.1.json").read_bytes() == b"first"
    assert (tmp_path / "trace.2.json").read_bytes() == b"second"
    assert path.read_bytes() == b""


def test_a_name_without_a_suffix(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"first")
    TraceFile(path).close()
    assert (tmp_path / "trace.1").read_bytes() == b"first"


def test_a_device_is_written_to_as_it_is() -> None:
    with TraceFile("/dev/null") as file:
        file.write(generation())
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_os_error() -> None:
    file = TraceFile("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        file.write(generation())
    with pytest.raises(OSError, match="No space left"):
        file.close()


def test_a_folder_that_does_not_exist_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        TraceFile(tmp_path / "missing" / "trace.json")


def ids(path: Path) -> list[str]:
    return [request.id for request in read(path).requests]


def test_the_newest_half_at_least_of_what_it_may_hold_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    most, told = 40_000, []
    with TraceFile(path, max_size=most, begun=lambda: told.append(path.stat().st_size)) as file:
        for n in range(100):
            file.write(generation(name=f"r{n}", stream=n))
            longest = most // 2 + 10_000  # a piece ends with the part that makes it too long
            assert all(piece.stat().st_size <= longest for piece in file.pieces)
    assert file.pieces == [tmp_path / "trace.earlier.json", path]
    kept = [name for piece in file.pieces for name in ids(piece)]
    assert kept == [f"r{n}" for n in range(100 - len(kept), 100)]
    assert sum(piece.stat().st_size for piece in file.pieces) > most // 2
    assert len(told) > 2 and not any(told)  # each time while the file is empty
    assert file.dropped > 100_000


def test_nothing_is_dropped_that_may_be_kept(tmp_path: Path) -> None:
    with TraceFile(tmp_path / "trace.json", max_size=1_000_000) as file:
        file.write(generation())
    assert file.pieces == [tmp_path / "trace.json"] and file.dropped == 0


def test_both_pieces_of_an_earlier_run_are_kept(tmp_path: Path) -> None:
    path, aside = tmp_path / "trace.json", tmp_path / "trace.earlier.json"
    for number in range(2):
        path.write_text(f"newer {number}")
        aside.write_text(f"older {number}")
        TraceFile(path).close()
        assert pieces(path) == [path] and not path.stat().st_size
    aside.write_text("older 2")  # alone
    TraceFile(path).close()
    names = {p.name: p.read_text() for p in tmp_path.iterdir()}
    assert names == {
        "trace.json": "",
        "trace.1.json": "newer 0",
        "trace.1.earlier.json": "older 0",
        "trace.2.json": "newer 1",
        "trace.2.earlier.json": "older 1",
        "trace.3.earlier.json": "older 2",
    }


def test_a_piece_that_was_moved_away_is_whose_moved_it(tmp_path: Path) -> None:
    path, mine = tmp_path / "trace.json", tmp_path / "mine.json"
    with TraceFile(path, max_size=2) as file:
        file.write(generation())
        path.rename(mine)
        file.write(generation(name="r2", stream=2))
        file.write(generation(name="r3", stream=3))
    assert ids(mine) == ["r1"] and ids(tmp_path / "trace.earlier.json") == ["r2"] and ids(path) == ["r3"]
