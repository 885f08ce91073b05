"""What a dialect is: a table of where a writer puts what phasetrace needs, and what it cannot say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from phasetrace.mapping import Attributes, Span

SECOND, NANOSECOND = 10**9, 1


class Duration(StrEnum):
    """The stretches of a request that writers give as numbers."""

    FRONTEND = "time before the engine had it"
    QUEUE = "time in queue"
    TTFT = "time to first token"
    PREFILL = "prefill"
    DECODE = "decode"
    INFERENCE = "inference"  # prefill and decode
    E2E = "e2e"
    TPOT = "time per output token"


class Count(StrEnum):
    """What writers count."""

    PROMPT = "prompt tokens"
    OUTPUT = "output tokens"
    CACHED = "cached tokens"
    MAX_TOKENS = "max_new_tokens"
    SEQUENCES = "num_return_sequences"


class Stage(StrEnum):
    """What a child span of a request stands for."""

    QUEUE = "queue"
    PREFILL = "prefill"
    DECODE = "decode"
    PREEMPTED = "preempted"


@dataclass(frozen=True, slots=True)
class In:
    """An attribute that holds a duration, and its unit."""

    key: str
    unit: int = SECOND


@dataclass(frozen=True, slots=True)
class At:
    """The event at a moment: the first of its name, or the last; none where there are fewer than `among`."""

    event: str
    last: bool = False
    among: int = 1


@dataclass(slots=True)  # one a span: a frozen one takes twice as long to make
class Written:
    """A span with what stands around it."""

    span: Span
    resource: Attributes
    scope: str

    @property
    def said_by(self) -> str:
        """The scope and the service, which name the writer."""
        return f"{self.scope} {self.resource.get('service.name', '')!s}"


Keys = tuple[str, ...]
# Every generation of the conventions, and what came before or beside them; the newest first.
COUNTS: Mapping[Count, Keys] = {
    Count.PROMPT: ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
    Count.OUTPUT: (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
    ),
    Count.CACHED: (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.cached_tokens",
        "llm.token_count.prompt_details.cache_read",
    ),
    Count.MAX_TOKENS: ("gen_ai.request.max_tokens",),
    Count.SEQUENCES: ("gen_ai.request.choice.count", "gen_ai.request.n", "gen_ai.usage.num_sequences"),
}
DURATIONS: Mapping[Duration, tuple[In, ...]] = {
    Duration.QUEUE: (In("gen_ai.latency.time_in_queue"),),
    Duration.TTFT: (In("gen_ai.latency.time_to_first_token"),),
    Duration.PREFILL: (In("gen_ai.latency.time_in_model_prefill"),),
    Duration.DECODE: (In("gen_ai.latency.time_in_model_decode"),),
    Duration.INFERENCE: (In("gen_ai.latency.time_in_model_inference"),),
    Duration.E2E: (In("gen_ai.latency.e2e"),),
}


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """How one writer tells of requests.

    Args:
        writer: who writes so, as it is shown.
        engine: what served the request, where the span does not say it.
        is_request: whether a span is a request; a dialect is asked only if those before it said no.
        durations: where the numbers are, the best first.
        counts: likewise.
        told: counts that its requests should have, so that one without is named.
        stages: name of a child span -> what it stands for.
        parts: spans that are wanted only to find the way from a child to its request.
        came: names of events at which a request had come, where the span begins before.
        moments: field of a `Request` -> the event then, of the request's span or one under it.
        prefill_holds_queue: its prefill and inference begin at the queue already.
        missing: a number that stands for none.
        doubts: looks at the whole span and says which of its numbers are not what they are called, and why.
        gateway: the request as its way in saw it: the engine's own span under it is the better one.
        cannot: what no span of this dialect says.
    """

    writer: str
    engine: str
    is_request: Callable[[Written], bool]
    durations: Mapping[Duration, tuple[In, ...]] = field(default_factory=lambda: DURATIONS)
    counts: Mapping[Count, Keys] = field(default_factory=lambda: COUNTS)
    told: frozenset[Count] = frozenset((Count.PROMPT, Count.OUTPUT))
    stages: Mapping[str, Stage] = field(default_factory=dict)
    parts: frozenset[str] = frozenset()
    came: Keys = ()
    moments: Mapping[str, At] = field(default_factory=dict)
    prefill_holds_queue: bool = False
    missing: float | None = None
    doubts: Callable[[Written], Mapping[Duration | Count, str]] | None = None
    gateway: bool = False
    cannot: str = ""
