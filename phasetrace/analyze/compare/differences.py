"""What else is not the same in two runs: versions, model, device, settings; load, caches, machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields

from phasetrace.model import Breakdown, Difference, Group, Knobs, Table

Value = bool | int | float | str

PLACES = ("role", "data_parallel_rank", "data_parallel_index")  # knobs that say which process told them
OWN = ("batch_rows",)  # settings that are counts of a request's own
MACHINE = ("cpu_cores", "threads", "devices")
LOAD = (
    "requests",
    "request_rate",
    "concurrency",
    "batch",
    "sequences_per_request",
    "prompt_tokens",
    "padded_prompt_tokens",
    "output_tokens",
    "prefix_cache_hit_rate",
    "running",
    "waiting",
    "kv_cache_usage",
    "preemptions",
    "accepted_length",
    "cpu_utilization",
    "gpu_utilization",
)
FRACTIONS = ("prefix_cache_hit_rate", "kv_cache_usage", "cpu_utilization", "gpu_utilization")
DIFFER = 1.1  # times: what is measured and differs by less is alike
DIFFERENT_FRACTION = 0.05


def set_differently(before: Breakdown, after: Breakdown, tables: tuple[Table, Table]) -> Iterator[Difference]:
    """Versions, model, hardware, and the settings of engine and requests."""
    one, other = tables
    yield from _named(_facts(one), _facts(other))
    engine = one.knobs, other.knobs
    yield from _named(*({k: v for k, v in knobs.items() if k not in PLACES} for knobs in engine))
    yield from _named(_asked(before), _asked(after))


def measured_differently(tables: tuple[Table, Table]) -> Iterator[Difference]:
    """Load and use, as far as they differ."""
    one, other = (table.groups[-1] for table in tables)
    for name in LOAD:
        values = getattr(one, name), getattr(other, name)
        if _apart(name, *values):
            yield Difference(name, *values)


def machine_differs(differences: tuple[Difference, ...]) -> bool:
    """Whether the runs were given another machine, on purpose."""
    return any(d.name in MACHINE for d in differences)


def _named(before: Mapping[str, Value | None], after: Mapping[str, Value | None]) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Difference(name, before.get(name), after.get(name))


def _facts(table: Table) -> dict[str, Value | None]:
    group = table.groups[-1] if table.groups else Group()
    model = {f"model_{f.name}": getattr(table.model, f.name) for f in fields(table.model)}
    hardware = {f"hardware_{f.name}": getattr(table.hardware, f.name) for f in fields(table.hardware)}
    machine = {name: getattr(group, name) for name in MACHINE}
    return {"engine": table.engine, "version": table.engine_version, **model, **hardware, **machine}


def _asked(b: Breakdown) -> Knobs:
    """What most requests were set to."""
    found: dict[str, Counter[Value]] = {}
    for r in b.requests:
        own = dict(r.request.settings) | ({"mode": r.request.mode} if r.request.mode else {})
        for name, value in own.items():
            if name not in OWN:
                found.setdefault(name, Counter())[value] += 1
    most = ((name, counts.most_common(1)[0]) for name, counts in found.items())
    return {name: value for name, (value, count) in most if 2 * count >= len(b.requests)}


def _apart(name: str, one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return False
    if name in FRACTIONS:
        return abs(one - other) >= DIFFERENT_FRACTION
    return max(one, other) > DIFFER * min(one, other)
