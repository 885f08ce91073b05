"""`phasetrace explain`: the page on a cause."""

from __future__ import annotations

import difflib
import sys

import click

from phasetrace.cli import terminal
from phasetrace.errors import UsageError
from phasetrace.semconv import Cause

ANSWERS = (Cause.HEALTHY, Cause.UNKNOWN, Cause.DATA_DEFECT)  # no fix was made that a second run could show
COMPARE = """
Record again after the change, and let `phasetrace compare BEFORE AFTER` say whether it is more than noise.
"""


@click.command(short_help="Print the page on a cause, or list all causes.")
@click.argument("cause", required=False)
def command(cause: str | None) -> int:
    """Print the page on CAUSE: how it is told, what it costs, what to change. Without CAUSE, list them."""
    shown = terminal.shown_by(sys.stdout)
    if cause is None:
        terminal.deliver(listing(shown), None)
    else:
        terminal.deliver(page(known(cause)), None)
    return 0


def listing(shown: terminal.Shown) -> str:
    """Every cause under the phase that owns its time."""
    from phasetrace.render.ink import Ink

    ink = Ink(*shown)
    longest = max(len(cause.value) for cause in Cause)
    lines: list[str] = []
    phase = None
    for cause in Cause:
        if cause.phase != phase:
            lines += [""] * bool(lines) + [ink.bold(cause.phase)]
            phase = cause.phase
        lines += ink.wrap(cause.meaning, indent=" " * (longest + 4), first=f"  {cause:<{longest}}  ")
    return "\n".join(lines) + "\n"


def known(word: str) -> Cause:
    """The cause of this id, however it is written."""
    ident = word.strip().lower().replace("_", "-").replace(" ", "-")
    by_id = {cause.value: cause for cause in Cause}
    if ident in by_id:
        return by_id[ident]
    near = difflib.get_close_matches(ident, by_id, n=1)
    hint = f"did you mean {near[0]}?" if near else "`phasetrace explain` lists the causes"
    raise UsageError(f"no cause is called {word!r}; {hint}")


def page(cause: Cause) -> str:
    """The page, or the one sentence where none is written yet."""
    from importlib.resources import files

    path = files("phasetrace.advise").joinpath("pages", f"{cause}.md")
    if path.is_file():
        return path.read_text(encoding="utf-8") + ("" if cause in ANSWERS else COMPARE)
    return f"# {cause}\n\n{cause.meaning[0].upper()}{cause.meaning[1:]}.\n"
