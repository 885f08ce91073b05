"""`phasetrace bench`: what this machine and a model reach, and how far from the floor that is."""

from __future__ import annotations

import sys
from typing import Any

import click

from phasetrace.cli import terminal
from phasetrace.errors import UsageError


@click.command(short_help="Measure what this machine and a model reach.")
@click.option(
    "--python",
    "python",
    default="python3",
    metavar="PYTHON",
    show_default=True,
    help="A Python that has torch.",
)
@click.option("--model", metavar="PATH", help="A model of yours. [default: random weights]")
@click.option(
    "--layers", type=click.IntRange(1), default=8, show_default=True, help="Of the model without --model."
)
@click.option(
    "--hidden-size",
    type=click.IntRange(64),
    default=512,
    show_default=True,
    help="Of the model without --model.",
)
@click.option("--device", metavar="DEVICE", help="cpu, cuda, mps. [default: a GPU if there is one]")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    help="[default: float32 on a CPU, else bfloat16]",
)
@click.option("--quick", is_flag=True, help="Fewer and shorter measurements.")
@click.option(
    "--keep/--no-keep", default=True, help="Keep the result for `phasetrace diagnose --ceilings kept`."
)
def command(python: str, keep: bool, **options: Any) -> int:
    """Measure prefill over lengths, decode over batches and contexts, memory bandwidth and arithmetic.

    It runs in your application's Python, which has torch (and transformers for a model). Other load on the
    machine is measured too: stop it first.
    """
    from phasetrace.analyze.bench import bench
    from phasetrace.render import bench as report
    from phasetrace.supervise import bench as supervise

    measured, error = [], None
    for line in supervise.measure(python, options):
        if "progress" in line:
            click.echo(f"phasetrace: {line['progress']}", err=True)
        error = line.get("error", error)
        measured.append(line)
    found = bench(measured)
    if found is None:
        raise UsageError(f"nothing was measured: {error or 'the program said nothing'}")
    terminal.deliver(report.bench(found, *terminal.shown_by(sys.stdout)), None)
    if error:
        click.echo(f"phasetrace: {error}", err=True)
    if keep:
        click.echo(f"phasetrace: kept in {supervise.keep(found.device, found.ceilings)}", err=True)
    return 0
