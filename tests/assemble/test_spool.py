"""Only what was committed is read, and what was torn is counted."""

from pathlib import Path

import pytest

from phasetrace.assemble.spool import read_segment
from phasetrace.errors import TraceFormatError
from phasetrace_agent import layout
from tests.builders import PROCESS, frame, segment

MARKS = [(layout.MARK, layout.encode_mark(n, layout.SCHEDULED, n)) for n in range(3)]


def test_reads_every_record_of_an_ended_process(tmp_path: Path) -> None:
    info, records, _ = read_segment(segment(tmp_path / "a.seg", *MARKS))
    assert records == MARKS
    assert (info.process, info.pid, info.torn) == (PROCESS, 1, 0)


def test_a_live_read_leaves_the_newest_record_for_the_next(tmp_path: Path) -> None:
    path = segment(tmp_path / "a.seg", *MARKS)
    _, first, offset = read_segment(path, live=True)
    _, rest, _ = read_segment(path, offset)
    assert first == MARKS[:2]
    assert first + rest == MARKS


def test_goes_on_where_the_last_read_ended(tmp_path: Path) -> None:
    path = segment(tmp_path / "a.seg", *MARKS)
    _, _, offset = read_segment(path)
    assert read_segment(path, offset)[1:] == ([], offset)


def test_a_record_without_its_length_is_not_there(tmp_path: Path) -> None:
    path = segment(tmp_path / "a.seg", MARKS[0])
    data = bytearray(path.read_bytes())
    second = frame(*MARKS[1])
    at = layout.HEADER_BYTES + len(frame(*MARKS[0]))
    data[at + 4 : at + len(second)] = second[4:]
    path.write_bytes(data)
    info, records, _ = read_segment(path)
    assert (records, info.torn) == (MARKS[:1], 0)


def test_a_torn_record_is_counted_and_passed_over(tmp_path: Path) -> None:
    path = segment(tmp_path / "a.seg", *MARKS)
    data = bytearray(path.read_bytes())
    end_of_second = layout.HEADER_BYTES + 2 * len(frame(*MARKS[0]))
    data[end_of_second - 4 : end_of_second] = b"\0\0\0\0"
    path.write_bytes(data)
    info, records, _ = read_segment(path)
    assert (records, info.torn) == ([MARKS[0], MARKS[2]], 1)


def test_an_impossible_length_ends_the_segment(tmp_path: Path) -> None:
    path = segment(tmp_path / "a.seg", *MARKS)
    data = bytearray(path.read_bytes())
    at = layout.HEADER_BYTES + len(frame(*MARKS[0]))
    data[at : at + 4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)
    info, records, _ = read_segment(path)
    assert (records, info.torn) == (MARKS[:1], 1)


@pytest.mark.parametrize("content", [b"", b"PHTSPOOL", b"\0" * 4096, b"hello" * 100])
def test_refuses_what_is_no_segment(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.seg"
    path.write_bytes(content)
    with pytest.raises(TraceFormatError, match="not a spool segment"):
        read_segment(path)


def test_names_the_version_that_can_read_it(tmp_path: Path) -> None:
    path = segment(tmp_path / "a.seg")
    data = bytearray(path.read_bytes())
    data[8:10] = (99).to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(TraceFormatError, match="layout 99"):
        read_segment(path)
