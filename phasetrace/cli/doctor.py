"""`phasetrace doctor`: what would be recorded here, and what would not, and why."""

from __future__ import annotations

import click

from phasetrace import supervise


@click.command(
    short_help="Say what a recording of a command would hook.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("argv", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
def command(argv: tuple[str, ...]) -> int:
    """Say what `phasetrace run -- COMMAND` would hook, and what not, and why.

    COMMAND itself is not run: only its Python is started, with a short script that looks at the environment.
    Without COMMAND it is the `python` on PATH that is looked at. Exits with 1 if a check fails.
    """
    examination = supervise.examine(argv or ("python",))
    for check in examination:
        click.echo(f"{check.sign} {check.subject:<14} {check.answer}")
    return 0 if all(check.fine for check in examination) else 1
