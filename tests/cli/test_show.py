from pathlib import Path

import pytest

from phasetrace.cli import main

Captured = pytest.CaptureFixture[str]


def test_without_an_id_the_slowest_is_shown(trace: Path, capsys: Captured) -> None:
    assert main(["show", str(trace)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "request ffffffff" in out and "ITL" in out and "prefill" in out


@pytest.mark.parametrize("ident", ["b", "bbbbbbbb"])
def test_an_id_may_be_given_by_its_beginning(trace: Path, ident: str, capsys: Captured) -> None:
    assert main(["show", str(trace), "--request", ident]) == 0
    assert "request bbbbbbbb" in capsys.readouterr().out


def test_a_list(trace: Path, capsys: Captured) -> None:
    assert main(["show", str(trace), "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7 and lines[1].startswith("ffffffff")


@pytest.mark.parametrize(
    ("ident", "said"), [("x", "no request begins with 'x'"), ("", "6 requests begin with ''")]
)
def test_an_id_that_does_not_tell_is_one_line(trace: Path, ident: str, said: str, capsys: Captured) -> None:
    assert main(["show", str(trace), "--request", ident]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1
