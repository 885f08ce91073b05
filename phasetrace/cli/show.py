"""`phasetrace show`: one request as a waterfall; of a server its busiest second and its start, too."""

from __future__ import annotations

import sys

import click

from phasetrace.cli import inputs, terminal
from phasetrace.errors import UsageError
from phasetrace.model import Breakdown, Request, RequestBreakdown

MOST_NAMED = 3


@click.command(short_help="Show one request on a time axis.")
@click.argument("source", metavar="INPUT")
@click.option(
    "--request", "ident", metavar="ID", help="The request, or how its id begins. [default: the slowest]"
)
@click.option("--list", "listed", is_flag=True, help="List the requests, the slowest first.")
def command(source: str, ident: str | None, listed: bool) -> int:
    """Show one request of a trace on a time axis: phases, prefill chunks, gaps between tokens, stalls.

    Of an engine whose steps requests shared, the busiest second too: who sat in which step; and where its
    start was recorded, what that consisted of. --request leaves both out.

    INPUT is a trace file, or - for stdin.
    """
    from phasetrace import analyze
    from phasetrace.render import waterfall
    from phasetrace.render.batch_timeline import busiest_second
    from phasetrace.render.start import start

    breakdown = analyze.breakdown(inputs.read((source,)))
    shown = terminal.shown_by(sys.stdout)
    timed = [*breakdown.requests, *breakdown.warm_up]
    if listed:
        text = waterfall.listing(timed, breakdown.failed, shown.ascii)
    else:
        chosen = choose(breakdown, ident)
        render = waterfall.request if isinstance(chosen, RequestBreakdown) else waterfall.unfinished
        text = render(chosen, breakdown.recording, *shown)  # type: ignore[arg-type]
        if ident is None:
            whole = (draw(breakdown.recording, *shown) for draw in (busiest_second, start))
            text += "".join(f"\n{block}" for block in whole if block is not None)
    terminal.deliver(text, None)
    return 0


def choose(breakdown: Breakdown, ident: str | None) -> RequestBreakdown | Request:
    """The slowest without an id, else the request of this id, or the only one whose id begins so."""
    timed = [*breakdown.requests, *breakdown.warm_up]
    if ident is None:
        slowest = max(breakdown.requests or timed, key=lambda r: r.e2e_ns, default=None)
        if slowest is None and not breakdown.failed:
            raise UsageError(
                "no request's times make sense; `phasetrace diagnose` says what is wrong with them"
            )
        return slowest or breakdown.failed[0]
    by_id: dict[str, RequestBreakdown | Request] = {r.request.id: r for r in timed}
    by_id |= {r.id: r for r in breakdown.failed}
    if ident in by_id:
        return by_id[ident]
    meant = [known for known in by_id if known.startswith(ident)]
    if not meant:
        raise UsageError(f"no request begins with {ident!r}; `phasetrace show --list` names them")
    if len(meant) > 1:
        some = ", ".join(map(repr, meant[:MOST_NAMED]))
        raise UsageError(f"{len(meant)} requests begin with {ident!r}: {some}; give more of the id")
    return by_id[meant[0]]
