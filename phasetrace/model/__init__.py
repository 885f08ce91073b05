"""Every noun of phasetrace: what was recorded, what it breaks down into, what is diagnosed. Pure data.

Times are `int` nanoseconds since the Unix epoch (`_ns`), durations `int` nanoseconds; conversion happens in
`render` only.
`None` always means unknown, never zero.
"""

from phasetrace.model.breakdown import (
    Breakdown,
    Interference,
    Owner,
    PartTime,
    Percentiles,
    PhaseTime,
    RequestBreakdown,
    Stall,
    StallCause,
    StepCostModel,
)
from phasetrace.model.diagnosis import (
    Ceilings,
    Diagnosis,
    Finding,
    NotEnoughData,
    Prediction,
)
from phasetrace.model.recording import (
    Defect,
    Interval,
    Ints,
    ModelFacts,
    Part,
    Pause,
    Phase,
    PrefixChunk,
    Process,
    Provenance,
    Recording,
    Request,
    RequestStatus,
    Sequence,
    StepCount,
    Steps,
    Wait,
)
from phasetrace.model.table import (
    Goal,
    Group,
    Knobs,
    Table,
    TableHardware,
    TableModel,
)

__all__ = [
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
    "Sequence",
    "Stall",
    "StallCause",
    "StepCostModel",
    "StepCount",
    "Steps",
    "Table",
    "TableHardware",
    "TableModel",
    "Wait",
]
