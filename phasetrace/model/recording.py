"""What was recorded: requests, steps, pauses, processes, models."""

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
    # What a decode forward is split into, where the cost of a step is known (`analyze/step_model.py`):
    FLOOR = "floor"  # what the step takes for this request alone: weights and its own KV read once
    PEERS = "peers"  # more for the other sequences that decode in it
    OTHERS_PREFILL = "others-prefill"  # more for the prompt tokens of others that it reads
    RECOMPUTE = "recompute"  # reading its own tokens again after a preemption
    HOST_GAP = "host-gap"  # between two steps, while the engine had work
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
