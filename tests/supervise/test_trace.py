"""The trace begins with its first part, and has a place of refuge."""

from __future__ import annotations

from pathlib import Path

import pytest

from phasetrace.model import Recording
from phasetrace.read import read
from phasetrace.supervise import recover
from phasetrace.supervise.folder import make_folder
from phasetrace.supervise.trace import Trace
from tests import builders


def one(name: str = "r1") -> Recording:
    return Recording(requests=(builders.request(name),))


def opened(output: Path, rest: Path) -> Trace:
    return Trace(output, rest, "auto", begun=lambda: None)


def test_an_earlier_trace_makes_way_for_the_first_part(tmp_path: Path) -> None:
    output = tmp_path / "trace.json"
    output.write_text("mine")
    told: list[str] = []
    trace = Trace(output, tmp_path / "rest.json", "auto", begun=lambda: told.append(output.read_text()))
    assert output.read_text() == "mine" and not trace.is_begun
    trace.write(one())
    trace.write(one("r2"))
    trace.close()
    assert told == [""]  # once, before anything was in it
    assert trace.is_begun and len(read(output).requests) == 2
    assert (tmp_path / "trace.1.json").read_text() == "mine"


def test_nothing_to_write_touches_nothing(tmp_path: Path) -> None:
    output = tmp_path / "trace.json"
    output.write_text("mine")
    trace = opened(output, tmp_path / "rest.json")
    trace.close()
    assert not trace.is_begun and trace.failure is None
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"] and output.read_text() == "mine"


def test_what_cannot_be_written_goes_to_the_rest(tmp_path: Path) -> None:
    trace = opened(tmp_path / "missing" / "trace.json", tmp_path / "rest.json")
    trace.write(one())
    trace.write(one("r2"))
    trace.close()
    assert "cannot write" in (trace.failure or "") and trace.rest_failure is None and trace.is_begun
    assert len(read(tmp_path / "rest.json").requests) == 2


@pytest.mark.parametrize("parts", [1, 2])
def test_a_trace_that_is_deleted_meanwhile_goes_to_the_rest(tmp_path: Path, parts: int) -> None:
    trace = opened(tmp_path / "trace.json", tmp_path / "rest.json")
    trace.write(one())
    (tmp_path / "trace.json").unlink()
    for number in range(1, parts):
        trace.write(one(f"more{number}"))
    trace.close()
    assert "was deleted" in (trace.failure or "") and trace.rest_failure is None
    assert len(read(tmp_path / "rest.json").requests) == parts


def test_neither_can_be_written(tmp_path: Path) -> None:
    trace = opened(tmp_path / "missing" / "trace.json", tmp_path / "missing" / "rest.json")
    trace.write(one())
    trace.write(one("r2"))
    trace.close()
    assert trace.failure is not None and trace.rest_failure is not None


def test_a_rest_that_may_not_grow_is_recovered_from_both_its_pieces(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    trace = Trace(tmp_path / "missing" / "trace.json", folder.rest, "auto", max_size=2)
    for name in ("r1", "r2", "r3"):
        trace.write(one(name))
    trace.close()
    assert trace.dropped
    recover(folder.base, tmp_path / "trace.json", quiet=True)
    assert sorted(request.id for request in read(tmp_path / "trace.json").requests) == ["r2", "r3"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_rest_that_fails_too_is_not_begun_anew(tmp_path: Path) -> None:
    trace = opened(Path("/dev/full"), Path("/dev/full"))
    trace.write(one())
    assert "No space left" in (trace.failure or "") and "No space left" in (trace.rest_failure or "")
    trace.write(one("r2"))
    trace.close()
