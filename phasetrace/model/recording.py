"""What was recorded: requests, and the steps that they took part in."""

from __future__ import annotations

from collections import abc
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from phasetrace.model.columns import Ints
from phasetrace.model.noun import noun
from phasetrace.model.process import ModelFacts, Pause, Process, Stage
from phasetrace.model.terms import Part, Provenance, RequestStatus, Usage


@noun
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


@noun
class Request:
    """One `generate()` call, one prompt given to a server, or one HTTP request.

    The marks are in order where known: sent <= arrival <= received <= scheduled <= first token <= last token
    <= finished, and first token <= first output <= finished. `stream`, `first_step` and `last_step` tie the
    request to the steps it took part in; every step of that range gave each of its unfinished sequences one
    token, except where `yields` says otherwise. `prefill_chunks` names the steps that read prompt tokens
    (the last of them gives the first token) with the positions computed, padding included, summed over
    sequences; `yields` counts tokens a sequence. A step's end is its tokens' time. What the steps sampled
    for a request is what its sequences hold and `discarded_tokens`: sampled `past-end` of a sequence (by a
    step scheduled ahead, or speculated beyond a stop), behind a `stop-string` that only the text shows, for
    a request `aborted` meanwhile, or before it was `preempted`.
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
    external_cached_tokens: int | None = None  # of these: fetched from outside this engine
    grammar_ns: int | None = None  # inside [received, scheduled): until its grammar was compiled
    tokenize_ns: int | None = None  # inside [arrival, received)
    detokenize_ns: int | None = None  # inside [last token, finished)
    mode: str | None = None  # greedy | sample | beam | beam_sample | assisted | prompt_lookup | ...
    settings: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    stream: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    prefill_chunks: tuple[StepCount, ...] = ()
    yields: tuple[StepCount, ...] = ()
    recomputed: tuple[StepCount, ...] = ()  # steps that read tokens again after a preemption; positions
    discarded_tokens: Mapping[str, int] = field(default_factory=dict)  # by reason, see above
    preemptions: tuple[Interval, ...] = ()
    prefixes: tuple[tuple[PrefixChunk, ...], ...] = ()  # one tuple a sequence, where hashed
    streamed_ns: int | None = None  # in the user's streamer, inside [last token, finished)
    queued_ns: int | None = None  # the engine's scheduler had it, inside [received, scheduled]
    first_output_ns: int | None = None  # the user had the first of the answer: all of it, unless streamed
    sent_ns: int | None = None  # its client sent it, by the client's clock; known from the client's span
    external_id: str | None = None  # the engine's own id of it
    derived: frozenset[str] = frozenset()  # names of the fields above that were derived, not observed

    @property
    def begin_ns(self) -> int:
        """When its wall clock begins: it was sent, else, where no client tells, it arrived."""
        return self.arrival_ns if self.sent_ns is None else self.sent_ns

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens over all sequences, without padding."""
        return _sum([s.prompt_tokens for s in self.sequences])

    @property
    def output_tokens(self) -> int | None:
        """Output tokens over all sequences."""
        return _sum([s.output_tokens for s in self.sequences])

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


def _sum(values: list[int | None]) -> int | None:
    if len(values) == 1:  # of most requests, and asked for a dozen times
        return values[0]
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
    proposed: Ints | None = None  # tokens speculated, to be verified in the step
    accepted: Ints | None = None  # of these: found right
    discarded: Ints | None = None  # tokens sampled and given to nobody
    preempted: Ints | None = None  # requests that lost their place as it was scheduled
    adapters: Ints | None = None  # distinct LoRA adapters in the step

    def __len__(self) -> int:
        return len(self.begin_ns)

    def known(self) -> dict[str, Ints]:
        """The columns that may be unknown and are not, by name."""
        columns = ((name, getattr(self, name)) for name in _MAY_BE_UNKNOWN)
        return {name: column for name, column in columns if column is not None}


_MAY_BE_UNKNOWN = tuple(field.name for field in fields(Steps) if field.default is None)


@dataclass(frozen=True, slots=True)
class Defect:
    """Something in the data that is missing or contradicts, and what it would take."""

    defect: str


@dataclass(frozen=True, slots=True)
class Samples:
    """What a process used of its host, or what a device did. All columns have the length of `times_ns`."""

    process: str  # Process.key; "" for a device of the host
    device: int | None
    times_ns: Ints
    columns: Mapping[Usage, Ints]  # -1 where unknown

    def __len__(self) -> int:
        return len(self.times_ns)


@dataclass(frozen=True, slots=True)
class Recording:
    """All that a run or a file knows."""

    requests: tuple[Request, ...] = ()
    steps: abc.Sequence[Steps] = ()  # `StepColumns` where they were read from a file
    pauses: tuple[Pause, ...] = ()
    stages: tuple[Stage, ...] = ()
    samples: tuple[Samples, ...] = ()
    models: Mapping[str, ModelFacts] = field(default_factory=dict)
    processes: tuple[Process, ...] = ()
    defects: tuple[Defect, ...] = ()
    begin_ns: int | None = None
    end_ns: int | None = None
    source: str = "phasetrace"  # who wrote the trace
