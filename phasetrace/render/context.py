"""What stands beside a verdict in every format: engine, model, counts, coverage, what the recording cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from phasetrace.model import Breakdown, Ceilings, Diagnosis, Finding, Phase, Recording, Request, Table
from phasetrace.render.units import three_digits

ID = 12  # characters of a request's id
OURS = "phasetrace"  # source of a recording whose moments are those of its own steps
_ENDS = {
    Phase.CLIENT: ("sent_ns", "arrival_ns"),
    Phase.FRONTEND: ("arrival_ns", "received_ns"),
    Phase.QUEUE: ("received_ns", "scheduled_ns"),
    Phase.PREFILL: ("scheduled_ns", "first_token_ns"),
    Phase.DECODE: ("first_token_ns", "last_token_ns"),
    Phase.DELIVERY: ("last_token_ns", "finished_ns"),
}


class Engine(NamedTuple):
    """What served the diagnosed requests."""

    name: str | None
    version: str | None


class Counts(NamedTuple):
    """Requests, and which of them the figures are about."""

    total: int
    diagnosed: int
    warm_up: int
    failed: int


class Coverage(NamedTuple):
    """How much of the run was seen; unknown for traces of others."""

    processes: int | None
    hooked: int | None
    lost_records: int | None


def engine(breakdown: Breakdown) -> Engine:
    """The engine of most requests, and its version if a process says it."""
    if breakdown.of_table is not None:
        return Engine(breakdown.of_table.engine, breakdown.of_table.engine_version)
    requests = [r.request for r in (*breakdown.requests, *breakdown.warm_up)] + list(breakdown.failed)
    name = _most_common([r.engine for r in requests])
    versions = [p.engines[name] for p in breakdown.recording.processes if name in p.engines] if name else []
    return Engine(name, _most_common(versions))


def model_name(breakdown: Breakdown) -> str | None:
    """The model of most requests, by the name its owner gave it."""
    if breakdown.of_table is not None:
        return breakdown.of_table.model.name
    key = _most_common([r.request.model for r in breakdown.requests if r.request.model])
    if key is None:
        return None
    facts = breakdown.recording.models.get(key)
    return (facts.name or facts.architecture) if facts else key


def device(breakdown: Breakdown) -> str | None:
    """Where that model runs."""
    if breakdown.of_table is not None:
        return breakdown.of_table.hardware.name or breakdown.of_table.hardware.kind
    return _most_common([m.device for m in breakdown.recording.models.values() if m.device])


def counts(breakdown: Breakdown) -> Counts:
    """All requests, apart by what became of them."""
    if breakdown.of_table is not None:
        return _counts_of(breakdown.of_table)
    diagnosed, warm_up, failed = len(breakdown.requests), len(breakdown.warm_up), len(breakdown.failed)
    return Counts(diagnosed + warm_up + failed, diagnosed, warm_up, failed)


def _counts_of(table: Table) -> Counts:
    """As the groups count them; a group that does not is at least one request."""
    total = sum(round(g.requests) if g.requests else 1 for g in table.groups)
    failed = sum(
        max(0, round(g.requests - g.succeeded))
        for g in table.groups
        if g.requests and g.succeeded is not None
    )
    return Counts(total, total - failed, 0, failed)


def coverage(recording: Recording) -> Coverage:
    """Processes seen and known to be unseen, those that were hooked, and records lost."""
    recorded = recording.processes
    if recording.source != "phasetrace" or not recorded:
        return Coverage(None, None, None)
    unseen = sum(len(p.uncovered) for p in recorded)
    hooked = sum(not p.refused for p in recorded)
    return Coverage(len(recorded) + unseen, hooked, sum(p.lost_records for p in recorded))


def overhead(recording: Recording) -> float | None:
    """Time inside hooks per wall time of the run; None where either is unknown."""
    if coverage(recording).processes is None:
        return None
    begins = [recording.begin_ns, *(p.begin_ns for p in recording.processes)]
    ends = [recording.end_ns, *(p.end_ns for p in recording.processes)]
    begin = min((t for t in begins if t is not None), default=None)
    end = max((t for t in ends if t is not None), default=None)
    if begin is None or end is None or end <= begin:
        return None
    return sum(p.hook_ns for p in recording.processes) / (end - begin)


def derived(breakdown: Breakdown) -> dict[Phase, int]:
    """Phases with an end that was worked out from other numbers, not observed; in so many requests."""
    found: Counter[Phase] = Counter()
    for r in breakdown.requests:
        if r.request.derived:
            known = {p.phase for p in r.phases if p.ns}
            found.update(
                p for p, ends in _ENDS.items() if p in known and not r.request.derived.isdisjoint(ends)
            )
    return {phase: found[phase] for phase in Phase if phase in found}


def worked_out(breakdown: Breakdown) -> str | None:
    """The same as a sentence; None where all was observed, as the ends of recorded steps are."""
    if breakdown.recording.source == OURS:
        return None
    total = len(breakdown.requests)
    named = [
        phase.value if number == total else f"{phase.value} ({number:,} of {total:,} requests)"
        for phase, number in derived(breakdown).items()
    ]
    return f"derived from other numbers, not observed: {', '.join(named)}" if named else None


def ceilings(used: Ceilings) -> str:
    """What the device was taken to reach, and who says so."""
    rates = [f"{three_digits(used.bandwidth_bytes_s / 1e9)} GB/s"]
    if used.flops_s is not None:
        rates.append(f"{three_digits(used.flops_s / 1e12)} TFLOP/s")
    return f"ceilings {', '.join(rates)}: {used.source}"


def leading(diagnosis: Diagnosis) -> Finding | None:
    """The finding that the verdict is about; none where all is well or nothing is known."""
    first = next(iter(diagnosis.findings), None)
    return first if first is not None and first.cause == diagnosis.cause else None


def further(diagnosis: Diagnosis) -> tuple[Finding, ...]:
    """The findings after the leading one."""
    return diagnosis.findings[1:] if leading(diagnosis) else diagnosis.findings


def further_evidence(diagnosis: Diagnosis, finding: Finding) -> list[str]:
    """The evidence that the verdict has not said already."""
    said = diagnosis.verdict.lower()
    return [sentence for sentence in finding.evidence if sentence.lower().rstrip(".") not in said]


def short_ids(requests: Iterable[Request]) -> Callable[[str], str]:
    """What a request is called where there is little room: the end of its id, where that tells all apart.

    Ids of one process begin alike, and `phasetrace show` takes an end.
    """
    ids = [r.id for r in requests]
    tell_apart = len({ident[-ID:] for ident in ids}) == len(ids)
    return lambda ident: ident[-ID:] if tell_apart else ident


def troubles(recording: Recording) -> list[str]:
    """What kept phasetrace from seeing everything, a sentence each, without repeating itself."""
    said: dict[str, None] = {}
    for p in recording.processes:
        for name, why in p.refused.items():
            said[f"{name} was not hooked: {why}"] = None
        for trouble in p.troubles:
            said[f"a hook switched itself off: {trouble}"] = None
        for child in p.uncovered:
            said[f"a Python process ran unrecorded: {child}"] = None
    return list(said)


def _most_common(values: list[str]) -> str | None:
    return Counter(values).most_common(1)[0][0] if values else None
