"""Every noun of phasetrace: what was recorded, what it breaks down into, what is diagnosed. Pure data.

Times are `int` nanoseconds since the Unix epoch (`_ns`), durations `int` nanoseconds; conversion happens in
`render` only.
`None` always means unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Phase(StrEnum):
    """The buckets a request's wall clock is cut into; they do not overlap and sum to it exactly."""

    CLIENT = "client"
    FRONTEND = "frontend"
    QUEUE = "queue"
    PREFILL = "prefill"
    DECODE = "decode"
    PREEMPTED = "preempted"
    DELIVERY = "delivery"
    UNATTRIBUTED = "unattributed"


class Part(StrEnum):
    """What a phase is split into. Those a step can hold are recorded by the agent under the same names."""

    SETUP = "setup"  # host work between the call and the first forward: validation, cache allocation
    ENCODE = "encode"  # the encoder of an encoder-decoder model, an image tower
    PREPARE = "prepare"  # building a forward's inputs
    FORWARD = "forward"
    UPDATE = "update"  # cache and mask bookkeeping after a forward
    LOGITS = "logits"  # logits processors and warpers: penalties, grammar masks
    SAMPLING = "sampling"  # choosing the token, after the processors
    CRITERIA = "criteria"  # stopping criteria
    STREAM = "stream"  # handing a token to the user's streamer
    DRAFT = "draft"  # proposing tokens: a draft model, prompt lookup
    SCHEDULE = "schedule"
    OUTPUT = "output"  # processing a step's output on the host
    GC = "gc"
    APPLICATION = "application"  # the application's own time inside its span before the call
    TOKENIZE = "tokenize"
    DETOKENIZE = "detokenize"
    ENGINE_BUSY = "engine-busy"
    SCHEDULER = "scheduler"
    OTHER = "other"  # inside the phase and in no part; always shown


class Wait(StrEnum):
    """Why the request at the head of an engine's queue was not scheduled, inferred as a step was."""

    NONE = "none"  # nobody waits
    SLOTS = "slots"  # as many sequences run as may
    KV = "kv"  # no KV blocks for it
    BUDGET = "budget"  # the tokens of a step are used up
    GRAMMAR = "grammar"  # its grammar is not compiled yet
    REMOTE_KV = "remote-kv"
    LORA = "lora"
    PAUSED = "paused"
    OTHER = "other"


class Provenance(StrEnum):
    """How a number came to be known."""

    OBSERVED = "observed"
    DERIVED = "derived"
    UNKNOWN = "unknown"


class RequestStatus(StrEnum):
    """How a request ended; only OK ones enter percentiles."""

    OK = "ok"
    FAILED = "failed"
    CUT_OFF = "cut-off"  # the recording ended before the request did


@dataclass(frozen=True, slots=True)
class Sequence:
    """One row of a request: a batch row, a beam's winner, one of `n`."""

    prompt_tokens: int | None = None  # without padding
    padding_tokens: int | None = None  # padding in the prompt
    output_tokens: int | None = None  # up to and including its end of sequence
    finish_reason: str | None = None  # stop | length | error | abort


@dataclass(frozen=True, slots=True)
class StepCount:
    """A step of a request's stream (by its index in the stream) and a number of tokens."""

    step: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of time, half open: [begin_ns, end_ns)."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class PrefixChunk:
    """A content-defined chunk of a prompt: its salted hash and how many tokens it holds."""

    hash: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Request:
    """One `generate()` call, one prompt given to a server, or one HTTP request.

    The marks are in order where known: arrival <= received <= scheduled <= first token <= last token <=
    finished. `stream`, `first_step` and `last_step` tie the request to the steps it took part in; every
    step of that range gave each of its unfinished sequences one token, except where `yields` says
    otherwise. `prefill_chunks` names the steps that read prompt tokens (the last of them gives the first
    token) with the positions computed, padding included, summed over sequences; `yields` counts tokens a
    sequence. A step's end is its tokens' time.
    """

    id: str  # unique in a recording
    trace_id: str  # 32 hex digits
    span_id: str  # 16 hex digits
    parent_span_id: str | None
    process: str  # Process.key
    engine: str  # transformers | vllm | ...
    operation: str  # gen_ai.operation.name: chat | text_completion
    model: str | None  # a key of Recording.models, else a bare name
    arrival_ns: int
    received_ns: int | None = None
    scheduled_ns: int | None = None
    first_token_ns: int | None = None
    last_token_ns: int | None = None
    finished_ns: int | None = None
    status: RequestStatus = RequestStatus.OK
    error_type: str | None = None
    finish_reason: str | None = None
    sequences: tuple[Sequence, ...] = ()
    cached_tokens: int | None = None  # prompt tokens whose KV was there already, summed over sequences
    tokenize_ns: int | None = None  # inside [arrival, received)
    detokenize_ns: int | None = None  # inside [last token, finished)
    mode: str | None = None  # greedy | sample | beam | beam_sample | assisted | prompt_lookup | ...
    settings: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    stream: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    prefill_chunks: tuple[StepCount, ...] = ()
    yields: tuple[StepCount, ...] = ()
    preemptions: tuple[Interval, ...] = ()
    prefixes: tuple[tuple[PrefixChunk, ...], ...] = ()  # one tuple a sequence, where hashed
    streamed_ns: int | None = None  # in the user's streamer, inside [last token, finished)
    external_id: str | None = None  # the engine's own id of it
    derived: frozenset[str] = frozenset()  # names of the fields above that were derived, not observed

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens over all sequences, without padding."""
        return _sum(s.prompt_tokens for s in self.sequences)

    @property
    def output_tokens(self) -> int | None:
        """Output tokens over all sequences."""
        return _sum(s.output_tokens for s in self.sequences)

    @property
    def longest_output(self) -> int | None:
        """Output tokens of the longest sequence; what TPOT divides by."""
        known = [s.output_tokens for s in self.sequences if s.output_tokens is not None]
        return max(known) if known else None

    def provenance(self, name: str) -> Provenance:
        """Whether the field `name` was observed, derived, or is unknown."""
        if getattr(self, name) is None:
            return Provenance.UNKNOWN
        return Provenance.DERIVED if name in self.derived else Provenance.OBSERVED


def _sum(values: Any) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one stream (one `generate()` call, or one engine core), column by column.

    Shapes: all columns have length n. Row i is the stream's step `first_index + i`.
    `parts[p][i]` is the time of part p inside step i; parts are laid end to end and sum to end - begin.
    """

    process: str
    stream: int
    first_index: int
    begin_ns: Ints
    end_ns: Ints
    parts: Mapping[Part, Ints]
    device_ns: Ints | None = None  # time on the device, -1 where unknown
    running: Ints | None = None  # sequences in the step
    new_tokens: Ints | None = None  # tokens given out, summed over sequences
    computed_tokens: Ints | None = None  # input positions computed: prompts, padding, one a decoding row
    waiting: Ints | None = None  # requests in the queue when it was scheduled
    kv_blocks: Ints | None = None  # KV blocks used then
    waits: Ints | None = None  # why the head of the queue waited: places in `Wait`

    def __len__(self) -> int:
        return len(self.begin_ns)


@dataclass(frozen=True, slots=True)
class Pause:
    """A stop of a whole process: the garbage collector's, for one."""

    process: str
    kind: str  # gc
    begin_ns: int
    end_ns: int
    detail: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model's shape, as far as the engine tells. Sizes in bytes, counts plain."""

    key: str
    name: str | None = None
    architecture: str | None = None
    parameters: int | None = None
    active_parameters: int | None = None
    weight_bytes: int | None = None
    layers: int | None = None
    hidden_size: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocabulary: int | None = None
    max_context: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    device: str | None = None  # cpu | cuda | mps | ...
    offloaded_bytes: int | None = None
    encoder_decoder: bool | None = None
    compiled: bool | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """One recorded process: what it ran and what recording it cost."""

    key: str  # 16 hex digits, unique
    pid: int
    parent_pid: int
    executable: str | None = None  # basename only
    script: str | None = None  # basename only
    python: str | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    engines: Mapping[str, str] = field(default_factory=dict)  # engine -> version
    refused: Mapping[str, str] = field(default_factory=dict)  # engine -> why it is not hooked
    facts: Mapping[str, bool | int | float | str] = field(default_factory=dict)  # knobs, device, threads
    hook_calls: int = 0
    hook_ns: int = 0  # time inside hooks: calls x the cost calibrated at start
    lost_records: int = 0
    troubles: tuple[str, ...] = ()  # hooks that disabled themselves: "where: ExceptionType"
    uncovered: tuple[str, ...] = ()  # Python children that run without phasetrace: "basename flags: why"


@dataclass(frozen=True, slots=True)
class Defect:
    """Something in the data that is missing or contradicts, and what it would take."""

    defect: str


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a run or a file knows."""

    requests: tuple[Request, ...] = ()
    steps: tuple[Steps, ...] = ()
    pauses: tuple[Pause, ...] = ()
    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    processes: tuple[Process, ...] = ()
    defects: tuple[Defect, ...] = ()
    begin_ns: int | None = None
    end_ns: int | None = None
    source: str = "phasetrace"  # who wrote the trace


class Goal(StrEnum):
    """The metric that the user wants better."""

    TTFT = "ttft"
    TPOT = "tpot"
    E2E = "e2e"
    THROUGHPUT = "throughput"


# ---- a table of numbers, where there is no recording (`summary/1`) ----

Knobs = Mapping[str, bool | int | float | str]


@dataclass(frozen=True, slots=True)
class TableModel:
    """A model as a table tells it. Counts plain."""

    name: str | None = None
    parameters: float | None = None
    active_parameters: float | None = None
    bytes_per_weight: float | None = None
    layers: float | None = None
    kv_heads: float | None = None
    head_dim: float | None = None
    hidden_size: float | None = None
    quantization: str | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class TableHardware:
    """One device and how many of it; bandwidth, arithmetic and memory are of one."""

    name: str | None = None
    kind: str | None = None  # gpu | cpu
    count: float | None = None
    memory_bandwidth_gb_s: float | None = None
    tflops: float | None = None
    memory_gb: float | None = None
    host_link_gb_s: float | None = None
    offloaded_gb: float | None = None  # weights that stay in host memory


@dataclass(frozen=True, slots=True)
class Group:
    """One row: requests measured together. Seconds (`_s`), tokens, fractions; a mean or a median."""

    label: str | None = None
    requests: float | None = None
    succeeded: float | None = None
    order: str | None = None  # first | later
    devices: float | None = None  # these four override the table's own
    dtype: str | None = None
    quantization: str | None = None
    knobs: Knobs | None = None
    concurrency: float | None = None  # requests the client keeps open
    request_rate: float | None = None  # offered, a second
    batch: float | None = None  # sequences that share one decode step
    sequences_per_request: float | None = None
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    shared_prefix_tokens: float | None = None
    padded_prompt_tokens: float | None = None
    output_tokens: float | None = None
    max_tokens: float | None = None
    client_wait_s: float | None = None
    frontend_s: float | None = None
    tokenize_s: float | None = None
    queue_s: float | None = None
    prefill_s: float | None = None
    decode_s: float | None = None
    ttft_s: float | None = None
    ttft_p95_s: float | None = None
    ttft_p99_s: float | None = None
    tpot_s: float | None = None
    itl_p50_s: float | None = None
    itl_p95_s: float | None = None
    itl_p99_s: float | None = None
    itl_max_s: float | None = None
    queue_p95_s: float | None = None
    e2e_s: float | None = None
    e2e_p95_s: float | None = None
    e2e_p99_s: float | None = None
    client_e2e_s: float | None = None
    throughput_tok_s: float | None = None
    request_throughput: float | None = None
    prefilling_concurrently: float | None = None  # others' prompt tokens read while this group decoded
    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = None
    preemptions: float | None = None
    recomputed_token_share: float | None = None
    prefix_cache_hit_rate: float | None = None
    gpu_utilization: float | None = None
    cpu_utilization: float | None = None
    host_gap_s: float | None = None  # the device waits for the host, a step
    stall_s: float | None = None
    stall_period_s: float | None = None
    post_engine_s: float | None = None
    sampling_s: float | None = None
    draft_s: float | None = None
    communication_s: float | None = None
    grammar_compile_s: float | None = None
    stream_s: float | None = None
    client_ttft_s: float | None = None
    cpu_cores: float | None = None
    threads: float | None = None
    streaming: bool | None = None
    grammar: bool | str | None = None
    logprobs: bool | float | None = None
    repetition_penalty: float | None = None
    lora_adapters: float | None = None
    speculative_tokens: float | None = None
    accepted_length: float | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """What a user has who has numbers and no trace."""

    groups: tuple[Group, ...]
    goal: Goal | None = None
    engine: str | None = None
    engine_version: str | None = None
    knobs: Knobs = field(default_factory=dict)
    model: TableModel = field(default_factory=TableModel)
    hardware: TableHardware = field(default_factory=TableHardware)
    source: str = "summary/1"


# ---- analysis ----


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
    """One request's wall clock in phases, in time order; the phases' `ns` sum to `e2e_ns` exactly."""

    request: Request
    phases: tuple[PhaseTime, ...]
    e2e_ns: int
    ttft_ns: int | None
    tpot_ns: float | None
    new_prompt_tokens: int | None = None  # read by prefill: prompt + padding - cached
    repeated_prompt_tokens: int | None = None  # computed although an earlier request had computed them
    padded_decode_tokens: int | None = None  # steps x rows after a row's end of sequence
    warm_up: bool = False

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


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A recording's time by phase, over the requests that can be diagnosed, and what stands beside it."""

    recording: Recording
    requests: tuple[RequestBreakdown, ...]  # diagnosed: OK and not warm-up
    warm_up: tuple[RequestBreakdown, ...] = ()
    failed: tuple[Request, ...] = ()  # failed and cut off
    phases: tuple[PhaseTime, ...] = ()  # sums over `requests`
    metrics: Mapping[str, Percentiles] = field(default_factory=dict)  # ttft_ns tpot_ns itl_ns e2e_ns
    throughput_tok_s: float | None = None
    defects: tuple[Defect, ...] = ()
    unsplit: tuple[str, ...] = ()  # what could not be split, and the knob or hook that would
    of_table: Table | None = None  # what it was made from, where that is a table and no recording

    @property
    def total_ns(self) -> int:
        """Wall time summed over the diagnosed requests."""
        return sum(p.ns for p in self.phases)


# ---- diagnosis ----


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a fix will bring. Seconds, or tokens a second for throughput; `ratio` > 1 is better."""

    metric: str  # ttft_s | tpot_s | e2e_s | throughput_tok_s
    before: float
    after: float
    low: float
    high: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause with its evidence and its fix. `ns` is summed over the diagnosed requests."""

    cause: str  # an id of semconv.Cause
    phase: str  # a Phase, "host" or "none"
    ns: int
    share: float  # of the diagnosed requests' time
    confidence: str  # high | medium | low
    evidence: tuple[str, ...]
    recommendation: str
    commands: tuple[str, ...] = ()
    tradeoff: str = ""
    prediction: Prediction | None = None


@dataclass(frozen=True, slots=True)
class NotEnoughData:
    """A rule could not decide; `measure` says what would let it."""

    cause: str
    measure: str


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a machine reaches: measured, or stated with a trace."""

    bandwidth_bytes_s: float
    flops_s: float | None = None
    source: str = "measured"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The verdict: findings ranked by the time they win on the goal, the first one is the answer."""

    cause: str
    verdict: str
    goal: Goal
    breakdown: Breakdown
    findings: tuple[Finding, ...]
    not_enough: tuple[NotEnoughData, ...] = ()
    slo: Mapping[str, float] | None = None  # metric -> seconds
    ceilings: Ceilings | None = None  # of the machine, where they were given
