from dataclasses import replace
from pathlib import Path

import pytest

from phasetrace.cli import main
from phasetrace.cli.show import choose
from phasetrace.model import Breakdown, Recording, RequestBreakdown
from tests.builders import generation

Captured = pytest.CaptureFixture[str]


def test_without_an_id_the_slowest_is_shown(trace: Path, capsys: Captured) -> None:
    assert main(["show", str(trace)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "request ffffffff" in out and "ITL" in out and "prefill" in out


@pytest.mark.parametrize("ident", ["b", "bbbbbbbb", "bb"])
def test_a_piece_of_an_id_is_enough(trace: Path, ident: str, capsys: Captured) -> None:
    assert main(["show", str(trace), "--request", ident]) == 0
    assert "request bbbbbbbb" in capsys.readouterr().out


def test_a_list(trace: Path, capsys: Captured) -> None:
    assert main(["show", str(trace), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7 and lines[1].startswith("ffffffff")


@pytest.mark.parametrize(
    ("ident", "said"), [("x", "no request has 'x' in its id"), ("", "6 requests are called like ''")]
)
def test_an_id_that_does_not_tell_is_one_line(trace: Path, ident: str, said: str, capsys: Captured) -> None:
    assert main(["show", str(trace), "--request", ident]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_the_end_of_an_id_is_meant_rather_than_its_midst() -> None:
    ids = ("p-1-0", "p-10", "q-1", "q-11")
    found = [replace(generation(2).requests[0], id=ident) for ident in ids]
    timed = tuple(RequestBreakdown(r, (), 1, None, None) for r in found)
    b = Breakdown(Recording(), timed)
    chosen = {piece: choose(b, piece) for piece in ("p-1-0", "-1", "-11", "-1-")}
    assert [c.request.id for c in chosen.values() if isinstance(c, RequestBreakdown)] == [
        "p-1-0",
        "q-1",
        "q-11",
        "p-1-0",
    ]


def test_what_is_slow_may_be_chosen(trace: Path, capsys: Captured) -> None:
    assert main(["show", str(trace), "--list", "--by", "ttft"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert main(["show", str(trace), "--by", "ttft"]) == 0
    assert capsys.readouterr().out.startswith(f"request {lines[1].split()[0]}")


def test_down_to_each_token(trace: Path, capsys: Captured) -> None:
    assert main(["show", str(trace), "--request", "b", "--tokens"]) == 0
    request, tokens = capsys.readouterr().out.split("\ntoken ")
    assert "request bbbbbbbb" in request
    numbers = [line.split()[0] for line in tokens.splitlines()[1:]]
    assert numbers == [str(n) for n in range(1, len(numbers) + 1)] and len(numbers) > 1
