"""How a run went, below its verdict: tokens over time, the slowest requests, stalls, who slowed others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from phasetrace.model import Breakdown, Goal, Owner, Part, PartTime, Phase, PhaseTime, RequestBreakdown
from phasetrace.render import context, units
from phasetrace.render.axis import axis
from phasetrace.render.ink import Ink, columns, flow, table_room

LABEL = 9  # columns left of a line over time: "  tok/s  "
FIGURE = 14  # columns right of it: "  most 1.25 ms"
FEWEST_TOKENS = 100  # fewer make no line
FEWEST_REQUESTS = 4  # of fewer, the slowest are all
MOST = 3  # requests, stalls: who wants more has `show` and the report
TAIL = 95  # percentile: the 99th of a group is a request or two
WORTH = 0.01  # of all time: what stalls cost less is not told
MATTERS = 0.05  # of all time: what reading prompts costs others less is not told
LARGE = 0.2  # of a request: a part of its phase that is worth a word
LEAST_ROOM = 16  # for a column of words: in less, it is left out

SLOWNESS: dict[Goal, Callable[[RequestBreakdown], float]] = {
    Goal.TTFT: lambda r: r.ttft_ns or 0,
    Goal.TPOT: lambda r: r.tpot_ns or 0,
    Goal.E2E: lambda r: r.e2e_ns,
    Goal.THROUGHPUT: lambda r: r.e2e_ns,
}


def owned(owners: Sequence[Owner], metric: str) -> list[str]:
    """Which phase most of a metric is: one for all percentiles, or one for middle and one for tail."""
    own = [(o, max(o.phases, key=_ns)) for o in owners if o.metric == metric and not o.group and o.phases]
    runs = [list(run) for _, run in groupby(own, key=lambda pair: pair[1].phase)]
    said = []
    for run in runs:
        (first, largest), (last, _) = run[0], run[-1]
        of = f"p{first.percentile}" + (f"-p{last.percentile}" if last is not first else "") + " "
        said.append(f"{of if len(runs) > 1 else ''}{largest.phase} {units.share(largest.ns / first.ns)}")
    return said


def apart(owners: Sequence[Owner]) -> list[str]:
    """The groups of requests whose tail is mostly another phase than that of all."""
    tails = [(o, max(o.phases, key=_ns)) for o in owners if o.percentile == TAIL and o.phases]
    of_all = {o.metric: largest.phase for o, largest in tails if not o.group}
    return [
        f"{units.metric_name(o.metric)} p{TAIL} of {o.group}: {units.duration(o.ns)},"
        f" {largest.phase} {units.share(largest.ns / o.ns)}"
        for o, largest in tails
        if o.group and largest.phase is not of_all.get(o.metric)
    ][:MOST]


def pace(b: Breakdown, ink: Ink) -> list[str]:
    """Tokens a second and the longest times between tokens, from the first arrival to the last end."""
    if b.pace is None or sum(b.pace.tokens) < FEWEST_TOKENS:
        return []
    room = max(10, ink.width - LABEL - FIGURE)
    total_ns = b.pace.end_ns - b.pace.begin_ns
    cell_ns = total_ns / len(b.pace.tokens)
    rates = [1e9 * sum(cell) / (cell_ns * len(cell)) for cell in _cells(b.pace.tokens, room)]
    gaps = [float(max(cell)) for cell in _cells(b.pace.longest_gap_ns, room)]
    return [
        axis(total_ns, room, LABEL, ink),
        _line("tok/s", rates, units.three_digits(max(rates)), ink),
        _line("ITL", gaps, units.duration(max(gaps)), ink),
    ]


def slowest(b: Breakdown, goal: Goal, ink: Ink) -> list[str]:
    """The worst requests by the goal, and what most of their time was."""
    if len(b.requests) < FEWEST_REQUESTS:
        return []
    worst = sorted(b.requests, key=SLOWNESS[goal], reverse=True)[:MOST]
    names = context.short_ids(r.request for r in (*b.requests, *b.warm_up))
    rows: list[tuple[str, ...]] = [("slowest", "e2e", "TTFT", "prompt", "output")]
    for r in worst:
        tokens = (units.count(r.request.prompt_tokens), units.count(r.request.output_tokens))
        times = (ink.say(units.duration(r.e2e_ns)), ink.say(units.duration(r.ttft_ns)))
        rows.append((ink.say(names(r.request.id)), *times, *tokens))
    room = table_room(rows, ink.width)
    if room >= LEAST_ROOM:
        mostly = ["mostly", *(_mostly(r, room) for r in worst)]
        rows = [(*row, words) for row, words in zip(rows, mostly, strict=True)]
    head, *lines = columns(rows, right=(1, 2, 3, 4))
    return [ink.dim(head), *lines]


def stalls(b: Breakdown, ink: Ink) -> list[str]:
    """What tokens came late for, and what that cost; whose prompts cost others most."""
    told = [p for p in b.stall_patterns if p.ns >= WORTH * b.total_ns][:MOST]
    rows: list[tuple[str, ...]] = [
        ("stalls", "times", "typical", "lost", "share", "every" if any(p.period_ns for p in told) else "")
    ]
    for p in told:
        times = map(ink.say, map(units.duration, (p.typical_ns, p.ns)))
        every = ink.say(units.duration(p.period_ns)) if p.period_ns else ""
        rows.append((p.cause.value, units.count(p.count), *times, units.share(p.ns / b.total_ns), every))
    head, *lines = columns(rows, right=(1, 2, 3, 4, 5))
    return [*([ink.dim(head), *lines] if told else []), *_slowed_others(b, ink)]


def _slowed_others(b: Breakdown, ink: Ink) -> list[str]:
    lost = sum(r.part_ns(Phase.DECODE, Part.OTHERS_PREFILL) for r in b.requests)
    if not lost or lost < MATTERS * b.total_ns:
        return []
    readers = [(r.stretched_others_ns or 0, r) for r in (*b.requests, *b.warm_up)]
    dearest = sorted(readers, key=lambda pair: -pair[0])[:MOST]
    names = context.short_ids(r.request for r in (*b.requests, *b.warm_up))
    said = [f"{ink.say(names(r.request.id))} by {ink.say(units.duration(ns))}" for ns, r in dearest if ns]
    lines = flow(said, ink.width - 4)
    return ["  prompts that slowed others most:", *(f"    {line}" for line in lines)] if said else []


def _mostly(r: RequestBreakdown, room: int) -> str:
    """The phase that most of a request was, and the part that most of that was, as far as there is room."""
    largest = max(r.phases, key=_ns, default=None)
    if largest is None or not r.e2e_ns:
        return ""
    said = [f"{largest.phase} {units.share(largest.ns / r.e2e_ns)}"]
    part = max(largest.parts, key=_ns, default=None)
    if part is not None and part.part is not Part.OTHER and part.ns >= LARGE * r.e2e_ns:
        said.append(str(part.part))
    return flow(said, room)[0].rstrip(",")


def _ns(time: PhaseTime | PartTime) -> int:
    return time.ns


def _line(label: str, heights: Sequence[float], most: str, ink: Ink) -> str:
    figure = ink.say(f"most {most}")
    return f"  {label:<{LABEL - 2}}{ink.sparkline(heights)}{figure:>{FIGURE}}"


def _cells(values: Sequence[int], room: int) -> list[Sequence[int]]:
    """The values that fall into each of so many columns, at least one in each."""
    edges = [at * len(values) // room for at in range(room + 1)]
    return [values[left : max(left + 1, right)] for left, right in zip(edges[:-1], edges[1:], strict=True)]
