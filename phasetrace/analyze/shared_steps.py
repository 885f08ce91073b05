"""All that follows from steps being shared: their cost, each request's share of it, who stretched whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from phasetrace.analyze import step_model
from phasetrace.analyze.composition import Composition, composition
from phasetrace.analyze.interference import interference, stretched_others
from phasetrace.analyze.non_negative import Floats
from phasetrace.analyze.shared_time import SharedTime, row_costs, shared_time
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Interference, Request, RequestBreakdown, StepCostModel


@dataclass(frozen=True, slots=True)
class SharedSteps:
    """Nothing but `models` is known of a process whose steps are too few for a model."""

    made: Composition | None = None
    models: Mapping[str, StepCostModel] = field(default_factory=dict)  # Process.key -> its engine's
    time: SharedTime | None = None
    read_ns: Floats | None = None  # of each row of the step table: what reading prompts took
    interference: tuple[Interference, ...] = ()
    stretched: Mapping[str, int] = field(default_factory=dict)  # Request.id -> others' decode time

    def told(self, request: RequestBreakdown) -> RequestBreakdown:
        """The request with its shared steps told apart."""
        if self.time is None or request.request.process not in self.models:
            return request
        ident = request.request.id
        return replace(
            request,
            phases=self.time.split(ident, request.phases),
            stretched_others_ns=self.stretched.get(ident),
        )


def shared_steps(requests: Iterable[Request], table: StepTable) -> SharedSteps:
    """Of all requests that took part in steps, failed ones too."""
    made = composition(requests, table)
    if made is None:
        return SharedSteps()
    fitted = {process: step_model.fit(made, table, process) for process in made.processes}
    models = {process: model for process, model in fitted.items() if model is not None}
    if not models:
        return SharedSteps(made)
    costs = row_costs(made, table, models)
    return SharedSteps(
        made=made,
        models=models,
        time=shared_time(costs, table),
        read_ns=costs.read,
        interference=interference(costs),
        stretched=stretched_others(costs),
    )
