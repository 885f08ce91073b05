"""The last row of a terminal: kept free, drawn without a trace in what the application prints, given back."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import termios
from collections.abc import Iterator
from typing import TextIO

import pytest

from phasetrace.supervise.footer import Footer
from phasetrace.supervise.live import Live


class Terminal:
    """A pseudo-terminal; `shown` is what was written to it since it was last asked."""

    def __init__(self, rows: int, columns: int) -> None:
        self._master, slave = os.openpty()
        self.stream: TextIO = os.fdopen(slave, "w")
        self.resize(rows, columns)

    def resize(self, rows: int, columns: int = 80) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def shown(self) -> str:
        found = b""
        while select.select([self._master], [], [], 0.1)[0]:
            found += os.read(self._master, 100_000)
        return found.decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal(24, 80)
    yield made
    made.close()


def test_the_row_is_kept_free_once_and_drawn_in_one_piece(terminal: Terminal) -> None:
    footer = Footer(terminal.stream)
    footer.show("one")
    assert terminal.shown() == "\x1bD\x1b[A\x1b7\x1b[1;23r\x1b8" + "\x1b7\x1b[24;1H\x1b[0m\x1b[2Kone\x1b8"
    footer.show("two")
    assert terminal.shown() == "\x1b7\x1b[24;1H\x1b[0m\x1b[2Ktwo\x1b8"
    footer.close()


def test_the_cursor_is_where_it_was_and_no_line_of_the_application_is_touched(terminal: Terminal) -> None:
    footer = Footer(terminal.stream)
    footer.show("x")
    footer.close()
    said = terminal.shown()
    assert "\r" not in said and "\n" not in said
    assert re.sub(r"\x1b7.*?\x1b8", "", said) == "\x1bD\x1b[A"  # all else is between saved and restored


def test_a_terminal_of_another_size_keeps_its_own_last_row(terminal: Terminal) -> None:
    footer = Footer(terminal.stream)
    footer.show("x")
    terminal.resize(40)
    footer.show("x")
    assert "\x1b[1;39r" in terminal.shown()
    terminal.resize(3)
    footer.show("x")
    assert terminal.shown() == ""
    footer.close()


def test_closing_gives_the_row_back_once(terminal: Terminal) -> None:
    footer = Footer(terminal.stream)
    footer.close()
    assert terminal.shown() == ""  # nothing was shown
    footer.show("x")
    footer.close()
    footer.close()
    assert terminal.shown().count("\x1b[r") == 1


def test_a_terminal_that_is_gone_does_not_matter(terminal: Terminal) -> None:
    footer = Footer(terminal.stream)
    footer.show("x")
    terminal.stream.close()
    footer.show("x")
    footer.close()


def test_the_live_line_is_drawn_at_most_once_a_second(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    live = Live(terminal.stream)
    live.draw()
    live.draw()
    assert terminal.shown().count("phasetrace:") == 1
    live.close()


def test_a_dumb_terminal_gets_plain_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    Live(terminal.stream).draw()
    assert "\x1b" not in terminal.shown()
