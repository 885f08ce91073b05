"""The moments of a request from its span and the spans of its stages; each observed or derived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from phasetrace.mapping import Span
from phasetrace.model import Interval
from phasetrace.read.dialects import Dialect, Stage, Written
from phasetrace.read.dialects.dialect import At, Duration, Keys
from phasetrace.read.doubts import Doubts
from phasetrace.read.measured import Durations, distrust, durations, in_seconds

# Durations of one request come from two clocks, and parts of it are stamped by different threads: what is off
# by less contradicts nothing.
_SLACK_NS, _SLACK = 5_000_000, 0.001
_E2E_SLACK_NS, _E2E_SLACK = 50_000_000, 0.05  # a span is written some time after its request has ended
IN_NANOSECONDS = 10**18  # since the epoch is the year 2001; times in another unit are less
_BOUNDS = (
    (Stage.QUEUE, Duration.QUEUE, {"received_ns", "scheduled_ns"}),
    (Stage.PREFILL, Duration.PREFILL, {"scheduled_ns", "first_token_ns"}),
    (Stage.DECODE, Duration.DECODE, {"first_token_ns", "last_token_ns"}),
)
_ALL = frozenset[str]().union(*(names for _, _, names in _BOUNDS))


class Marks:
    """Moments by the names that `Request` has for them."""

    def __init__(self, arrival: int, finished: int) -> None:
        self.arrival = arrival
        self.finished = finished
        self.known: dict[str, int] = {}
        self.derived: list[str] = []
        self.preemptions: tuple[Interval, ...] = ()

    def observe(self, name: str, time: int) -> None:
        """Someone looked at a clock then."""
        self.known.setdefault(name, time)

    def derive(self, name: str, time: int) -> None:
        """It follows from other numbers. Outside the request by less than clocks differ is at its end."""
        if name in self.known:
            return
        if not self.arrival <= time <= self.finished:
            slack = round(_SLACK_NS + _SLACK * max(0, self.finished - self.arrival))
            if self.finished < time <= self.finished + slack:
                time = self.finished
            elif self.arrival - slack <= time < self.arrival:
                time = self.arrival
        self.known[name] = time
        self.derived.append(name)


def marks(
    written: Written,
    dialect: Dialect,
    stages: Sequence[tuple[Stage, Written]],
    inside: Sequence[Span],
    output: int | None,
    doubts: Doubts,
) -> Marks:
    """All moments that can be known."""
    found = durations(written, dialect, doubts)
    if written.span.start_ns >= IN_NANOSECONDS:
        in_seconds(found, written.span.end_ns - written.span.start_ns, doubts)
    made = _whole(written, found, dialect.came, doubts)
    if stages:
        _from_stages(made, stages)
    if dialect.moments:
        _from_events(made, (written.span, *inside), dialect.moments)
    distrust(found, made.finished - made.arrival, output, doubts)
    _from_durations(made, found, doubts)
    return made


def missing(made: Marks, dialect: Dialect, doubts: Doubts) -> None:
    """Say which stages that this writer can tell of are unknown, and what of the trace would tell them."""
    if _ALL <= made.known.keys():
        return
    for stage, duration, fields in _BOUNDS:
        if fields <= made.known.keys():
            continue
        if spans := [f"`{name}`" for name, stands_for in dialect.stages.items() if stands_for is stage]:
            keys = [f"`{place.key}`" for place in dialect.durations.get(duration, ())]
            of = f" of {dialect.writer}"
            doubts.say(f"{stage} is unknown: no span {' or '.join(spans)} and no {' or '.join(keys)}{of}")


def _whole(written: Written, found: Durations, came: Keys, doubts: Doubts) -> Marks:
    begin, end = written.span.start_ns, written.span.end_ns
    if came:
        begin = max((event.time_ns for event in written.span.events if event.name in came), default=begin)
    e2e = found.e2e
    if e2e is None:
        return Marks(begin, end)
    slack = max(_E2E_SLACK_NS, _E2E_SLACK * e2e)
    if end > begin and end - begin >= e2e - slack and end - begin <= e2e + slack:
        return Marks(begin, end)
    if end < begin and abs(begin - end - e2e) <= slack:
        doubts.say("the span ends before it begins: begin and end were swapped, and are swapped back")
        return Marks(end, begin)
    if e2e or end != begin:
        doubts.say(f"{_wrong_length(begin, end)}: e2e is used, counted from the span's begin")
    made = Marks(begin, begin + e2e)
    made.derived.append("finished_ns")
    return made


def _wrong_length(begin: int, end: int) -> str:
    wrong = "the span's length is not its e2e"
    if end <= begin:
        wrong = "the span has no length" if end == begin else "the span ends before it begins"
    other_unit = ", nor are its times nanoseconds since 1970, so that loads cannot be judged"
    return wrong + other_unit if begin < IN_NANOSECONDS else wrong


def _from_stages(made: Marks, stages: Iterable[tuple[Stage, Written]]) -> None:
    spans: dict[Stage, list[Interval]] = {}
    for stage, written in stages:
        spans.setdefault(stage, []).append(Interval(written.span.start_ns, written.span.end_ns))
    if queue := spans.get(Stage.QUEUE):
        made.observe("received_ns", min(i.begin_ns for i in queue))
    if prefill := spans.get(Stage.PREFILL):
        made.observe("scheduled_ns", min(i.begin_ns for i in prefill))
        made.observe("first_token_ns", max(i.end_ns for i in prefill))
    if queue:
        made.observe("scheduled_ns", max(i.end_ns for i in queue))
    if decode := spans.get(Stage.DECODE):
        made.observe("first_token_ns", min(i.begin_ns for i in decode))
        made.observe("last_token_ns", max(i.end_ns for i in decode))
    if evicted := spans.get(Stage.PREEMPTED):
        made.preemptions = tuple(sorted(evicted, key=lambda i: i.begin_ns))


def _from_events(made: Marks, spans: Iterable[Span], moments: Mapping[str, At]) -> None:
    times: dict[str, list[int]] = {}
    for span in spans:
        for event in span.events:
            times.setdefault(event.name, []).append(event.time_ns)
    for name, at in moments.items():
        found = times.get(at.event, ())
        if len(found) >= at.among:
            made.observe(name, max(found) if at.last else min(found))


def _from_durations(made: Marks, found: Durations, doubts: Doubts) -> None:
    queue, prefill = found.queue, found.prefill
    if found.ttft is not None:
        made.derive("first_token_ns", made.arrival + found.ttft)
    if found.frontend is not None:
        made.derive("received_ns", made.arrival + found.frontend)
    elif queue is not None and prefill is not None and "first_token_ns" not in made.known:
        made.derive("received_ns", made.arrival)  # the frontend's time is unknown, so it is in none of them
    if "received_ns" in made.known and queue is not None:
        made.derive("scheduled_ns", made.known["received_ns"] + queue)
    if prefill is not None and "first_token_ns" in made.known:
        made.derive("scheduled_ns", made.known["first_token_ns"] - prefill)
    if prefill is not None and "scheduled_ns" in made.known:
        made.derive("first_token_ns", made.known["scheduled_ns"] + prefill)
    if queue is not None:
        scheduled = made.known.get("scheduled_ns")
        made.derive("received_ns", made.arrival if scheduled is None else scheduled - queue)
        made.derive("scheduled_ns", made.known["received_ns"] + queue)
    if found.decode is not None and "first_token_ns" in made.known:
        made.derive("last_token_ns", made.known["first_token_ns"] + found.decode)
    elif found.inference is not None and "scheduled_ns" in made.known:
        made.derive("last_token_ns", made.known["scheduled_ns"] + found.inference)
    times = made.known.values()
    outside = times and (min(times) < made.arrival or max(times) > made.finished)
    if outside and made.finished > made.arrival:
        doubts.say("the phases do not fit into the request: they add up to more than its e2e")
