"""`phasetrace recover`: the trace of a run whose supervisor died."""

from __future__ import annotations

from pathlib import Path

import click

from phasetrace import supervise


@click.command(short_help="Write the trace of a run that was cut short.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the trace goes. [default: where the run wanted it; what it had written is taken over]",
)
@click.option("--quiet", is_flag=True, help="No summary at the end.")
def command(folder: Path, output: Path | None, quiet: bool) -> int:
    """Write the trace of a run that was cut short from what it left in DIR.

    DIR is the folder that `phasetrace run` names when something is left, in /dev/shm or the temporary
    folder. It stays until it is deleted by hand, so that recovering can be done again.
    """
    supervise.recover(folder, output, quiet=quiet)
    return 0
