"""A recording told as a table of numbers, so that rules made for tables serve it too.

Times are means over requests, so that phases sum; rates and loads are those of the time in which requests
were under way. What the recording does not know stays None.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phasetrace.analyze.group_of import group_of
from phasetrace.analyze.step_table import StepTable, step_table
from phasetrace.model import (
    Breakdown,
    Group,
    Knobs,
    ModelFacts,
    Process,
    RequestBreakdown,
    Table,
    TableHardware,
    TableModel,
)

# Facts of a process that are no knobs of its engine
NOT_KNOBS = ("flags", "cores", "threads", "worker_parameters", "worker_weight_bytes", "device_name")
DEVICES = ("tensor_parallel_size", "pipeline_parallel_size")
NOT_FORWARDED = ("auto", "none", "")  # of a cache's dtype: the model's own


def table_of(breakdown: Breakdown, steps: StepTable | None = None) -> Table:
    """One group, or two where warm-up was told apart; `steps` saves making the table of steps again."""
    steps = steps or step_table(breakdown.recording)
    requests = breakdown.requests or breakdown.warm_up
    process = _process(breakdown, requests)
    groups: list[Group] = []
    if breakdown.warm_up and breakdown.requests:
        groups.append(group_of(breakdown, breakdown.warm_up, steps, process, "first"))
    order = "later" if groups else None
    groups.append(group_of(breakdown, requests, steps, process, order))
    engine = _most_time(requests, "engine")
    return Table(
        groups=tuple(groups),
        engine=engine,
        engine_version=process.engines.get(engine) if process and engine else None,
        knobs=_knobs(process),
        model=_model(breakdown, requests),
        hardware=_hardware(breakdown, requests, process),
        source=breakdown.recording.source,
    )


def _process(breakdown: Breakdown, requests: Sequence[RequestBreakdown]) -> Process | None:
    """The one that the steps of most requests ran in."""
    key = _most_time(requests, "process")
    return next((p for p in breakdown.recording.processes if p.key == key), None)


def _most_time(requests: Sequence[RequestBreakdown], name: str) -> str | None:
    spent: Counter[str] = Counter()
    for request in requests:
        value = getattr(request.request, name)
        if value is not None:
            spent[value] += request.e2e_ns
    return max(spent, key=lambda value: spent[value]) if spent else None


def _knobs(process: Process | None) -> Knobs:
    facts = dict(process.facts) if process is not None else {}
    knobs = {name: value for name, value in facts.items() if name not in NOT_KNOBS}
    cache = facts.get("cache_dtype")
    if isinstance(cache, str) and cache not in NOT_FORWARDED:
        knobs["kv_cache_dtype"] = cache
    return {name: value for name, value in knobs.items() if not name.endswith("_ns")}


def _facts(breakdown: Breakdown, requests: Sequence[RequestBreakdown]) -> ModelFacts | None:
    key = _most_time(requests, "model")
    return breakdown.recording.models.get(key) if key is not None else None


def _model(breakdown: Breakdown, requests: Sequence[RequestBreakdown]) -> TableModel:
    facts = _facts(breakdown, requests)
    if facts is None:
        return TableModel(name=_most_time(requests, "model"))
    weights, parameters = facts.weight_bytes, facts.parameters
    return TableModel(
        name=facts.name or facts.architecture,
        parameters=parameters,
        active_parameters=facts.active_parameters,
        bytes_per_weight=weights / parameters if weights and parameters else None,
        layers=facts.layers,
        kv_heads=facts.kv_heads or facts.heads,
        head_dim=facts.head_dim,
        hidden_size=facts.hidden_size,
        quantization=facts.quantization,
        dtype=facts.dtype,
    )


def _hardware(
    breakdown: Breakdown, requests: Sequence[RequestBreakdown], process: Process | None
) -> TableHardware:
    facts = _facts(breakdown, requests)
    device = facts.device if facts is not None else None
    known = process.facts if process is not None else {}
    count = 1
    for name in DEVICES:
        size = known.get(name)
        count *= size if isinstance(size, int) and size > 0 else 1
    named = [p.facts["device_name"] for p in breakdown.recording.processes if "device_name" in p.facts]
    return TableHardware(
        name=str(named[0]) if named else None,
        kind=None if device is None else "cpu" if device == "cpu" else "gpu",
        count=count,
        offloaded_gb=facts.offloaded_bytes / 1e9 if facts and facts.offloaded_bytes else None,
    )
