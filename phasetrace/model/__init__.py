"""Every noun of phasetrace: what was recorded, what it breaks down into, what is diagnosed. Pure data.

Times are `int` nanoseconds since the Unix epoch (`_ns`), durations `int` nanoseconds; conversion happens in
`render` only.
`None` always means unknown, never zero.
"""

from phasetrace.model.breakdown import (
    Breakdown,
    Interference,
    Owner,
    Pace,
    PartTime,
    Percentiles,
    PhaseTime,
    RequestBreakdown,
    Stall,
    StallCause,
    StallPattern,
    StepCostModel,
)
from phasetrace.model.columns import NARROW, Ints, constant, joined, side_by_side
from phasetrace.model.diagnosis import (
    Ceilings,
    Diagnosis,
    Finding,
    NotEnoughData,
    Prediction,
)
from phasetrace.model.process import ModelFacts, Pause, Process, Stage
from phasetrace.model.recording import (
    Defect,
    Interval,
    PrefixChunk,
    Recording,
    Request,
    Samples,
    Sequence,
    StepCount,
    Steps,
)
from phasetrace.model.table import (
    Goal,
    Group,
    Knobs,
    Table,
    TableHardware,
    TableModel,
)
from phasetrace.model.terms import Part, Phase, Provenance, RequestStatus, Usage, Wait, recordable

__all__ = [
    "NARROW",
    "Breakdown",
    "Ceilings",
    "Defect",
    "Diagnosis",
    "Finding",
    "Goal",
    "Group",
    "Interference",
    "Interval",
    "Ints",
    "Knobs",
    "ModelFacts",
    "NotEnoughData",
    "Owner",
    "Pace",
    "Part",
    "PartTime",
    "Pause",
    "Percentiles",
    "Phase",
    "PhaseTime",
    "Prediction",
    "PrefixChunk",
    "Process",
    "Provenance",
    "Recording",
    "Request",
    "RequestBreakdown",
    "RequestStatus",
    "Samples",
    "Sequence",
    "Stage",
    "Stall",
    "StallCause",
    "StallPattern",
    "StepCostModel",
    "StepCount",
    "Steps",
    "Table",
    "TableHardware",
    "TableModel",
    "Usage",
    "Wait",
    "constant",
    "joined",
    "recordable",
    "side_by_side",
]
