"""What a recording breaks down into: every nanosecond of a request in one phase, and who stretched whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from phasetrace.model.recording import Defect, Recording, Request
from phasetrace.model.table import Table
from phasetrace.model.terms import Part, Phase


@dataclass(frozen=True, slots=True)
class PartTime:
    """How long a part of a phase took."""

    part: Part
    ns: int


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """How long a phase took. `parts` sum to `ns`; without any, the phase could not be split."""

    phase: Phase
    ns: int
    parts: tuple[PartTime, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestBreakdown:
    """One request's wall clock in phases, in time order; the phases' `ns` sum to `e2e_ns` exactly.

    Prefill ends with the engine's first token. TTFT is the user's: it ends when the first of the answer was
    handed over, where that was observed. It holds `first_delivery_ns` more, in which the engine decoded on.
    TPOT spreads what follows the first of a streamed answer over the tokens; one that came all at once was
    written at the engine's pace.
    """

    request: Request
    phases: tuple[PhaseTime, ...]
    e2e_ns: int
    ttft_ns: int | None
    tpot_ns: float | None
    new_prompt_tokens: int | None = None  # read by prefill: prompt + padding - cached
    repeated_prompt_tokens: int | None = None  # computed although an earlier request had computed them
    padded_decode_tokens: int | None = None  # steps x rows after a row's end of sequence
    stretched_others_ns: int | None = None  # decode time of all others that reading its prompt cost them
    warm_up: bool = False

    @property
    def first_delivery_ns(self) -> int | None:
        """The part of TTFT from the engine's first token until the user had the first of the answer."""
        handed, token = self.request.first_output_ns, self.request.first_token_ns
        return None if handed is None or token is None else handed - token

    @property
    def in_one_piece(self) -> bool:
        """Whether the user was handed nothing before all was written."""
        handed, last = self.request.first_output_ns, self.request.last_token_ns
        return handed is not None and last is not None and handed >= last

    def phase_ns(self, phase: Phase) -> int:
        """Time in `phase`, 0 where it did not occur."""
        return sum(p.ns for p in self.phases if p.phase is phase)

    def part_ns(self, phase: Phase, part: Part) -> int:
        """Time in `part` of `phase`, 0 where it did not occur or was not split."""
        return sum(t.ns for p in self.phases if p.phase is phase for t in p.parts if t.part is part)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of a metric over the diagnosed requests. Nanoseconds, except for throughput (tokens a second)."""

    p50: float
    p95: float
    p99: float


class StallCause(StrEnum):
    """Why one token came much later than the request's other tokens."""

    OTHERS_PREFILL = "others-prefill"  # the step read prompts of others
    PREEMPTION = "preemption"
    GC = "gc"
    COMPILE = "compile"  # one-off work of the engine: a new shape, a graph
    HOST = "host"  # the engine's own host work between forwards
    CONSUMER = "consumer"  # the user's streamer
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Stall:
    """A token of a request that came much later than usual, and who is to blame."""

    request: str  # Request.id
    begin_ns: int  # the token before
    end_ns: int  # the late token
    usual_ns: int  # the request's median time between tokens
    cause: StallCause
    by: tuple[str, ...] = ()  # Request.id of those whose prefill it was, the costliest first


@dataclass(frozen=True, slots=True)
class StallPattern:
    """Stalls of one cause, over all diagnosed requests; a step that several wait for counts once."""

    cause: StallCause
    count: int  # steps that stalled
    ns: int  # what requests lost beyond their usual time, summed over requests
    typical_ns: int  # the median stall
    period_ns: int | None = None  # from one to the next, where they are periodic


@dataclass(frozen=True, slots=True)
class Interference:
    """Decode time of one request that reading another's prompt cost it."""

    request: str  # Request.id of who paid
    by: str  # Request.id of whose prompt was read
    ns: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Which phases the requests around a percentile of a metric spend their time in."""

    metric: str  # ttft_ns | e2e_ns
    percentile: int  # 50 | 95 | 99
    requests: int  # how many it is the mean of
    ns: float  # their mean of the metric
    phases: tuple[PhaseTime, ...]  # means, inside the metric's span; the longest one owns it
    group: str | None = None  # "route=/v1/chat/completions", "prompt<1,024"; None for all


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast tokens came, over equal stretches of time from the first arrival to the last end."""

    begin_ns: int
    end_ns: int
    tokens: tuple[int, ...]  # that came in each stretch
    longest_gap_ns: tuple[int, ...]  # between two tokens of a sequence that reaches into it; 0 without one


@dataclass(frozen=True, slots=True)
class StepCostModel:
    """What a step takes, fitted on the recording's own steps: nanoseconds, each coefficient >= 0.

    time = fixed + per_sequence * sequences + per_context * context tokens + per_prefill * prompt tokens
    + per_attention * (prompt tokens x context before them). `low` and `high` come from resampling.
    """

    fixed_ns: float
    per_sequence_ns: float
    per_context_ns: float
    per_prefill_ns: float
    per_attention_ns: float
    low: tuple[float, float, float, float, float]
    high: tuple[float, float, float, float, float]
    explained: float  # R^2 over the steps that were not set aside
    spread: float  # of a step around the prediction: a robust standard deviation, as a share of it
    steps: int
    set_aside: int  # of them, as stalls or one-off work
    most_sequences: float  # the range that was observed: beyond it the model extrapolates
    most_context: float
    most_prefill: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A recording's time by phase, over the requests that can be diagnosed, and what stands beside it."""

    recording: Recording
    requests: tuple[RequestBreakdown, ...]  # diagnosed: OK and not warm-up
    warm_up: tuple[RequestBreakdown, ...] = ()
    failed: tuple[Request, ...] = ()  # failed and cut off
    phases: tuple[PhaseTime, ...] = ()  # sums over `requests`
    metrics: Mapping[str, Percentiles] = field(default_factory=dict)  # ttft_ns tpot_ns itl_ns e2e_ns
    longest_gap_ns: float | None = None  # between two tokens of a sequence
    throughput_tok_s: float | None = None
    defects: tuple[Defect, ...] = ()
    unsplit: tuple[str, ...] = ()  # what could not be split, and the knob or hook that would
    stalls: tuple[Stall, ...] = ()  # the longest first
    stall_patterns: tuple[StallPattern, ...] = ()  # the costliest first
    interference: tuple[Interference, ...] = ()  # the costliest first
    owners: tuple[Owner, ...] = ()
    pace: Pace | None = None  # of the diagnosed requests, where the times of their tokens are known
    one_off_ns: Mapping[str, int] = field(default_factory=dict)  # Request.id -> compilation and the like
    step_costs: Mapping[str, StepCostModel] = field(default_factory=dict)  # Process.key -> its engine's
    of_table: Table | None = None  # what it was made from, where that is a table and no recording

    @property
    def total_ns(self) -> int:
        """Wall time summed over the diagnosed requests."""
        return sum(p.ns for p in self.phases)
