"""What a stream can show, and the two ways out: results to stdout or a file, all else to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

import click

from phasetrace.errors import UsageError

WIDTH_OF_FILES = 80
WIDEST = 120  # a line of text longer than this is hard to read


class Shown(NamedTuple):
    """What render needs to know of where its text goes."""

    width: int
    color: bool
    ascii: bool


def shown_by(stream: TextIO) -> Shown:
    """Full width and colour on a terminal, elsewhere colour if asked for; ASCII where no more is encoded."""
    terminal = stream.isatty()
    width = min(shutil.get_terminal_size().columns, WIDEST) if terminal else WIDTH_OF_FILES
    able = terminal and os.environ.get("TERM") != "dumb"
    color = (able or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")
    return Shown(width, color, not (stream.encoding or "ascii").lower().startswith("utf"))


def in_file() -> Shown:
    """What a file shows: plain text of ordinary width, in UTF-8."""
    return Shown(WIDTH_OF_FILES, False, False)


def deliver(text: str, output: Path | None) -> None:
    """Write a result to the file, or to stdout without one."""
    if output is None or str(output) == "-":
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}; choose another place with -o") from None
    click.echo(f"phasetrace: wrote {output}", err=True)
