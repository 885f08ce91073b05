"""The trace file never overwrites, can be appended to, and is whole after each write."""

import json
import os
from pathlib import Path

import pytest

from phasetrace.emit.trace_file import TraceFile
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


def test_append_goes_on_even_behind_a_cut_line(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b'{"resourceSpans":[{"reso')
    with TraceFile(path, append=True) as file:
        file.write(generation())
    assert lines(path)[0] == b'{"resourceSpans":[{"reso'
    assert all(json.loads(line) for line in lines(path)[1:])


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
