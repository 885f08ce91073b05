"""`phasetrace show`: one request as a waterfall; of a server its busiest second and its start, too."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from phasetrace.cli import inputs, terminal
from phasetrace.errors import UsageError
from phasetrace.model import Breakdown, Request, RequestBreakdown

MOST_NAMED = 3

SLOWEST: dict[str, Callable[[RequestBreakdown], float]] = {
    "e2e": lambda r: r.e2e_ns,
    "ttft": lambda r: r.ttft_ns or 0,
    "tpot": lambda r: r.tpot_ns or 0,
}


@click.command(short_help="Show one request on a time axis, and the busiest second.")
@click.argument("source", metavar="[INPUT]", required=False)
@click.option(
    "--request",
    "ident",
    metavar="ID",
    help="The request, or as much of its id as tells it from others. [default: the slowest]",
)
@click.option(
    "--by",
    type=click.Choice(list(SLOWEST)),
    default="e2e",
    show_default=True,
    help="What makes a request slow.",
)
@click.option("--tokens", is_flag=True, help="Each of its tokens: when, with how many others, why late.")
@click.option("--list", "listed", is_flag=True, help="List the requests, the slowest first.")
def command(source: str | None, ident: str | None, by: str, tokens: bool, listed: bool) -> int:
    """Show one request of a trace on a time axis, down to its tokens.

    That is its phases, prefill chunks, the times between tokens, and the stalls with what or who caused them.
    Of an engine whose steps requests shared, the busiest second too: who sat in which step; and where its
    start was recorded, what that consisted of. --request leaves both out.

    INPUT is a trace file, or - for stdin; without one it is trace.json.

    \b
    phasetrace show trace.json                       the slowest request, the busiest second
    phasetrace show trace.json --by ttft             the one that waited longest for its first token
    phasetrace show trace.json --list                all of them, to choose from
    phasetrace show trace.json --request 4f8dcb-3    one of them, by a piece of its id
    phasetrace show trace.json --tokens | less       down to each token
    """  # noqa: D301  \b keeps click from filling the paragraph
    from phasetrace import analyze
    from phasetrace.render import token_times, waterfall
    from phasetrace.render.batch_timeline import busiest_second
    from phasetrace.render.start import start

    breakdown = analyze.breakdown(inputs.read((source,) if source else inputs.of_last_run()))
    shown = terminal.shown_by(sys.stdout)
    if listed:
        timed = sorted([*breakdown.requests, *breakdown.warm_up], key=SLOWEST[by], reverse=True)
        text = waterfall.listing(timed, breakdown.failed, shown.ascii)
    else:
        chosen = choose(breakdown, ident, SLOWEST[by])
        render = waterfall.request if isinstance(chosen, RequestBreakdown) else waterfall.unfinished
        text = render(chosen, breakdown.recording, *shown)  # type: ignore[arg-type]
        if tokens:
            asked = chosen.request if isinstance(chosen, RequestBreakdown) else chosen
            text += "\n" + token_times.every(asked, breakdown.recording, *shown)
        elif ident is None:
            whole = (draw(breakdown.recording, *shown) for draw in (busiest_second, start))
            text += "".join(f"\n{block}" for block in whole if block is not None)
    terminal.deliver(text, None)
    return 0


def choose(
    breakdown: Breakdown, ident: str | None, slowness: Callable[[RequestBreakdown], float] = SLOWEST["e2e"]
) -> RequestBreakdown | Request:
    """The slowest without an id, else the request of this id, or the only one whose id has it as a piece.

    A piece at the begin or the end of an id is meant rather than one in its midst.
    """
    timed = [*breakdown.requests, *breakdown.warm_up]
    if ident is None:
        slowest = max(breakdown.requests or timed, key=slowness, default=None)
        if slowest is None and not breakdown.failed:
            raise UsageError(
                "no request's times make sense; `phasetrace diagnose` says what is wrong with them"
            )
        return slowest or breakdown.failed[0]
    by_id: dict[str, RequestBreakdown | Request] = {r.request.id: r for r in timed}
    by_id |= {r.id: r for r in breakdown.failed}
    pieces: tuple[Callable[[str], bool], ...] = (
        lambda known: known == ident,
        lambda known: known.startswith(ident),
        lambda known: known.endswith(ident),
        lambda known: ident in known,
    )
    meant = next((found for has in pieces if (found := list(filter(has, by_id)))), [])
    if not meant:
        raise UsageError(f"no request has {ident!r} in its id; `phasetrace show --list` names them")
    if len(meant) > 1:
        some = ", ".join(map(repr, meant[:MOST_NAMED]))
        raise UsageError(f"{len(meant)} requests are called like {ident!r}: {some}; give more of the id")
    return by_id[meant[0]]
