"""`phasetrace diagnose`: where the time of a trace went, what to change, and what that will bring."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from phasetrace.analyze.machine import Ceilings
from phasetrace.cli import fail_on, inputs, terminal
from phasetrace.errors import UsageError
from phasetrace.model import Diagnosis, Goal, Recording, Table

FOUND = 1  # the exit code of a finding beyond --fail-on

Render = Callable[[Diagnosis, terminal.Shown], str]


@click.command(short_help="Say where the time went, what to change, and the gain.")
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True)
@click.option(
    "--goal",
    type=click.Choice([goal.value for goal in Goal]),
    help="The metric to make better. [default: what the trace suggests; the verdict says it]",
)
@click.option(
    "--slo", metavar="SLO", help="What was promised, in seconds: chat, voice, or ttft=0.5,tpot=0.05."
)
@click.option(
    "--engine-config",
    "config",
    metavar="FILE",
    help="Knobs, model and hardware for a trace without them: JSON, or the log of a vLLM server.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "markdown"]),
    help="[default: by the ending of -o, else text]",
)
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write the result there."
)
@click.option(
    "--fail-on",
    "limits",
    type=fail_on.FailOn(),
    metavar="WHAT",
    help="Exit with 1 on: any, a cause (or several, with commas), or a predicted gain such as 15%.",
)
def command(
    sources: tuple[str, ...],
    goal: str | None,
    slo: str | None,
    config: str | None,
    form: str | None,
    output: Path | None,
    limits: tuple[str, ...] | None,
) -> int:
    """Attribute the time of recorded requests, recommend the fix, predict the gain.

    INPUT is a trace of phasetrace or of others, a folder of them, or - for stdin. Several are read as one.
    Where there is no trace, a table of numbers (summary/1) is diagnosed as far as it reaches.
    """
    from phasetrace import advise, analyze, read

    stated = read.engine_config(config) if config is not None else read.EngineConfig()
    wanted, promised = Goal(goal) if goal else None, advise.parse_slo(slo) if slo else None
    found = inputs.read_any(sources)
    if isinstance(found, Table):
        if config is not None:
            raise UsageError(
                f"{sources[0]} is a table: it names engine and model itself, without --engine-config"
            )
        diagnosis = advise.diagnose_table(found, goal=wanted, slo=promised)
    else:
        recording = stated.beside(found) if config is not None else found
        diagnosis = advise.diagnose(
            analyze.breakdown(recording),
            goal=wanted,
            slo=promised,
            ceilings=stated.ceilings or kept(recording),
        )
    shown = terminal.shown_by(sys.stdout) if output is None else terminal.in_file()
    terminal.deliver(renderer(form or _by_ending(output))(diagnosis, shown), output)
    return FOUND if limits and fail_on.fails(diagnosis, limits) else 0


def kept(recording: Recording) -> Ceilings | None:
    """What `phasetrace bench` measured here, where the recording was made on that one device of this host."""
    from phasetrace.supervise import bench

    devices = {model.device for model in recording.models.values()}
    only = devices.pop() if len(devices) == 1 else None
    return bench.kept(only) if only and recording.source == "phasetrace" else None


def renderer(form: str) -> Render:
    """What makes this format."""
    from phasetrace.render import json_report, markdown, text

    renderers: dict[str, Render] = {
        "text": lambda d, shown: text.diagnosis(d, *shown),
        "json": lambda d, _: json_report.diagnosis(d),
        "markdown": lambda d, _: markdown.diagnosis(d),
    }
    return renderers[form]


def _by_ending(output: Path | None) -> str:
    return {".json": "json", ".md": "markdown"}.get(output.suffix if output else "", "text")
