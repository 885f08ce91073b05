"""`phasetrace compare`: what changed between two recordings, phase by phase, and whether it is noise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from phasetrace.cli import fail_on_worse, inputs, result, terminal
from phasetrace.cli.percent import Percent
from phasetrace.collector import without_collections
from phasetrace.errors import NothingRecordedError, UsageError
from phasetrace.model import Breakdown, Ceilings, Comparison, Goal, Table

if TYPE_CHECKING:
    from phasetrace.analyze.step_table import StepTable

FOUND = 1  # the exit code of a change beyond --fail-on
FORMS = ("text", "json", "markdown")

Render = Callable[[Comparison, terminal.Shown], str]


@click.command(short_help="Say what changed between two recordings, and whether it is noise.")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "--goal",
    type=click.Choice([goal.value for goal in Goal]),
    help="The metric to judge by. [default: what BEFORE suggests]",
)
@click.option(
    "--runs-differ",
    type=Percent(),
    metavar="SHARE",
    help="By how much two runs differ with nothing changed, on this machine. [default: 5%]",
)
@result.options(*FORMS)
@click.option(
    "--fail-on",
    "limits",
    type=fail_on_worse.FailOnWorse(),
    metavar="WHAT",
    help="Exit with 1 on: worse, a metric that is worse (or any), each also by so much, as in worse=10%; or a"
    " cause that came. Several with commas.",
)
@without_collections()
def command(
    before: str,
    after: str,
    goal: str | None,
    runs_differ: float | None,
    form: str | None,
    output: Path | None,
    limits: tuple[fail_on_worse.Limit, ...] | None,
) -> int:
    """Compare two recordings: did it help, where, and is that more than noise?

    BEFORE and AFTER are traces of phasetrace or of others, or folders of them.

    \b
    phasetrace compare before.json after.json
    phasetrace compare before.json after.json --goal ttft --fail-on worse=10%
    """  # noqa: D301  \b keeps click from filling the paragraph
    from phasetrace.advise import diagnose
    from phasetrace.analyze.compare import compare
    from phasetrace.analyze.noise import RUNS_DIFFER

    allowed = RUNS_DIFFER if runs_differ is None else runs_differ
    one, other, wanted = read(before), read(after), Goal(goal) if goal else None
    first = diagnose(one.breakdown, wanted, None, one.ceilings, one.steps)
    second = diagnose(other.breakdown, wanted, None, other.ceilings, other.steps)
    if second.goal is not first.goal:
        second = diagnose(other.breakdown, first.goal, None, other.ceilings, other.steps)
    found = compare(first, second, (one.steps, other.steps), called(before, after), allowed)
    shown = terminal.shown_by(sys.stdout) if output is None else terminal.in_file()
    terminal.deliver(renderer(form or result.by_ending(output, FORMS))(found, shown), output)
    return FOUND if limits and fail_on_worse.fails(found, limits) else 0


def called(before: str, after: str) -> tuple[str, str]:
    """The names of the files; their paths where both are called alike, or have none as "." has."""
    names = Path(before).name or before, Path(after).name or after
    return names if names[0] != names[1] else (before, after)


class Run(NamedTuple):
    """One of the two, as a diagnosis needs it."""

    breakdown: Breakdown
    steps: StepTable
    ceilings: Ceilings | None


def read(source: str) -> Run:
    """One input, broken down.

    Raises:
        UsageError: it is a table of numbers.
        NothingRecordedError: no request of it can be compared.
    """
    from phasetrace import analyze
    from phasetrace.read import stated_ceilings

    recording = inputs.read_any(inputs.asking((source,), {}))
    if isinstance(recording, Table):
        raise UsageError(
            f"{source} is a table of numbers, without requests to tell noise by; as two groups of one table,"
            " `phasetrace diagnose` compares such numbers"
        )
    steps = analyze.step_table(recording)
    breakdown = analyze.breakdown(recording, steps)
    if not breakdown.requests:
        raise NothingRecordedError(
            f"{source}: no request that can be compared; `phasetrace diagnose` says why"
        )
    return Run(breakdown, steps, stated_ceilings(recording))


def renderer(form: str) -> Render:
    """What makes this format."""
    from phasetrace.render.comparison import json_report, markdown, text

    renderers: dict[str, Render] = {
        "text": lambda c, shown: text.comparison(c, *shown),
        "json": lambda c, _: json_report.comparison(c),
        "markdown": lambda c, _: markdown.comparison(c),
    }
    return renderers[form]
