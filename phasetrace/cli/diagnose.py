"""`phasetrace diagnose`: where the time of a trace went, what to change, and what that will bring."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import click

from phasetrace.cli import fail_on, inputs, result, terminal
from phasetrace.collector import without_collections
from phasetrace.errors import UsageError
from phasetrace.model import Ceilings, Diagnosis, Goal, Recording, Table

FOUND = 1  # the exit code of a finding beyond --fail-on
FORMS = ("text", "json", "markdown", "html")

Render = Callable[[Diagnosis, terminal.Shown], str]


@click.command(short_help="Say where the time went, what to change, and the gain.")
@click.argument("sources", metavar="[INPUT...]", nargs=-1)
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
@click.option("--service", metavar="NAME", help="Of a server: whose traces.")
@click.option("--since", metavar="TIME", help="Of a server: from when: 15m, 2h, 3d, a date. [default: 1h]")
@click.option("--until", metavar="TIME", help="Of a server: until when. [default: now]")
@click.option("--limit", metavar="N", type=int, help="Of a server: traces at most. [default: 100]")
@click.option(
    "--ceilings",
    metavar="kept|FILE",
    help="What `phasetrace bench` measured: `kept` if the recording is of this machine, or the file that"
    " bench kept on another. [default: none, since a trace does not say whose machine it is of]",
)
@result.options(*FORMS)
@click.option(
    "--fail-on",
    "limits",
    type=fail_on.FailOn(),
    metavar="WHAT",
    help="Exit with 1 on: any, a cause (or several, with commas), or a predicted gain such as 15%.",
)
@without_collections()
def command(
    sources: tuple[str, ...],
    goal: str | None,
    slo: str | None,
    config: str | None,
    ceilings: str | None,
    form: str | None,
    output: Path | None,
    limits: tuple[str, ...] | None,
    **asked: str | int | None,
) -> int:
    """Attribute the time of recorded requests, recommend the fix, predict the gain.

    INPUT is a trace of phasetrace or of others, a folder of them, - for stdin, or the address of a Jaeger or
    Tempo server (headers for it go into PHASETRACE_HEADERS). Several are read as one. Without one it is
    trace.json, where `phasetrace run` leaves it.
    Where there is no trace, a table of numbers (summary/1) is diagnosed as far as it reaches.
    """
    from phasetrace import advise, analyze, read

    sources = sources or inputs.of_last_run()
    stated = read.engine_config(config) if config is not None else read.EngineConfig()
    wanted, promised = Goal(goal) if goal else None, advise.parse_slo(slo) if slo else None
    found = inputs.read_any(inputs.asking(sources, asked))
    if isinstance(found, Table):
        if config is not None:
            raise UsageError(
                f"{sources[0]} is a table: it names engine and model itself, without --engine-config"
            )
        if ceilings is not None:
            raise UsageError(f"{sources[0]} is a table: it names the hardware itself, without --ceilings")
        diagnosis = advise.diagnose_table(found, goal=wanted, slo=promised)
    else:
        recording = stated.beside(found) if config is not None else found
        table = analyze.step_table(recording)
        diagnosis = advise.diagnose(
            analyze.breakdown(recording, table),
            goal=wanted,
            slo=promised,
            ceilings=read.stated_ceilings(recording) or (of_file(recording, ceilings) if ceilings else None),
            table=table,
        )
    shown = terminal.shown_by(sys.stdout) if output is None else terminal.in_file()
    terminal.deliver(renderer(form or result.by_ending(output, FORMS))(diagnosis, shown), output)
    return FOUND if limits and fail_on.fails(diagnosis, limits) else 0


def of_file(recording: Recording, name: str) -> Ceilings:
    """What `phasetrace bench` kept of the recording's one kind of device: on this machine, or in a file.

    Raises:
        UsageError: that device is not in it, or the recording does not name one.
    """
    from phasetrace.supervise import bench

    devices = {model.device for model in recording.models.values() if model.device}
    if len(devices) != 1:
        ran = " and ".join(sorted(devices)) or "no known device"
        raise UsageError(f"--ceilings needs a model on one kind of device; this recording's ran on {ran}")
    path = bench.kept_in() if name == "kept" else Path(name)
    (device,) = devices
    found = bench.kept(device, path)
    if found is None:
        raise UsageError(f"{path} holds no ceilings of a device {device}; `phasetrace bench` measures them")
    return found


def renderer(form: str) -> Render:
    """What makes this format."""
    from phasetrace.render import json_report, markdown, text

    renderers: dict[str, Render] = {
        "text": lambda d, shown: text.diagnosis(d, *shown),
        "json": lambda d, _: json_report.diagnosis(d),
        "markdown": lambda d, _: markdown.diagnosis(d),
        "html": _html,
    }
    return renderers[form]


def _html(diagnosis: Diagnosis, _: terminal.Shown) -> str:
    from phasetrace.cli import page
    from phasetrace.render import html

    return html.report(diagnosis, page.parts())
