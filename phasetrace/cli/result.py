"""The options that say what a result looks like and where it goes, for all commands that have one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

ENDINGS = {".json": "json", ".md": "markdown", ".html": "html", ".htm": "html"}

Command = Callable[..., Any]


def options(*forms: str) -> Callable[[Command], Command]:
    """`--format` (as `form`: one of these, or None) and `-o` (as `output`)."""
    form = click.option(
        "--format", "form", type=click.Choice(forms), help="[default: by the ending of -o, else text]"
    )
    output = click.option(
        "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write the result there."
    )
    return lambda command: form(output(command))


def by_ending(output: Path | None, forms: Sequence[str]) -> str:
    """The format that a file of this name is meant to hold; text where it is none of these."""
    found = ENDINGS.get(output.suffix if output else "", "text")
    return found if found in forms else "text"
