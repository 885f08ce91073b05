"""`phasetrace run`: record a command."""

from __future__ import annotations

from pathlib import Path

import click

from phasetrace import supervise
from phasetrace.cli.size import size


@click.command(
    short_help="Record a command and all Python processes that it starts.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="trace.json",
    show_default=True,
    help="Where the trace goes; an existing one is kept as trace.1.json.",
)
@click.option(
    "--otlp", metavar="URL", help="Send the spans to this OTLP endpoint as well, like http://localhost:4318."
)
@click.option(
    "--detail",
    type=click.Choice(supervise.DETAILS),
    default="auto",
    show_default=True,
    help="How many spans a request gets; the file has everything in any case, and is smaller with fewer.",
)
@click.option(
    "--max-size",
    metavar="SIZE",
    type=size,
    help="Keep the newest of the trace, about so much (like 2GB): the older half in trace.earlier.json.",
)
@click.option(
    "--spool",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder for what is recorded and not yet written; without it /dev/shm or the temporary folder.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    help="Serve metrics there for Prometheus while the command runs (the usual port is 9464).",
)
@click.option(
    "--live",
    is_flag=True,
    help="Show what happens, as it happens: in the terminal's last row, or in lines on stderr.",
)
@click.option("--quiet", is_flag=True, help="No summary at the end.")
@click.argument("argv", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    output: Path,
    otlp: str | None,
    detail: str,
    max_size: int | None,
    spool: Path | None,
    metrics: str | None,
    live: bool,
    quiet: bool,
    argv: tuple[str, ...],
) -> int:
    """Record COMMAND, which runs as it would without; the exit code is the command's.

    All Python processes that it starts are recorded, in whatever environment they run; nothing has to be
    installed there.
    """
    options = supervise.RunOptions(
        output=output,
        otlp=otlp,
        detail=detail,
        spool=spool,
        quiet=quiet,
        metrics=metrics,
        live=live,
        max_size=max_size,
    )
    return supervise.run(argv, options).exit_code
