import io
import os
from pathlib import Path

import pytest

from phasetrace.cli import terminal
from phasetrace.errors import UsageError


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((100, 24)))


def test_a_terminal_has_colour_and_its_width() -> None:
    assert terminal.shown_by(Terminal()) == (100, True, False)


def test_a_pipe_has_neither() -> None:
    assert terminal.shown_by(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")) == (80, False, False)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert not terminal.shown_by(Terminal()).color


def test_colour_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert terminal.shown_by(pipe).color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not terminal.shown_by(pipe).color


def test_where_the_encoding_knows_no_more_it_is_ascii() -> None:
    assert terminal.shown_by(Terminal("latin-1")).ascii


def test_an_unwritable_output_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write .*: No such file or directory; choose another place"):
        terminal.deliver("text", tmp_path / "no" / "where")
