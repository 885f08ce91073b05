"""Everything that a diagnosis can name."""

from __future__ import annotations

from enum import Enum, StrEnum


class CausePhase(StrEnum):
    """The phases of causes that are no bucket of their own."""

    HOST = "host"
    NONE = "none"


class Cause(str, Enum):
    """Everything that a diagnosis can name, with the phase that owns the time."""

    phase: str
    meaning: str

    def __new__(cls, value: str, phase: str, meaning: str) -> Cause:
        """Make the member equal to its id."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.phase = phase
        member.meaning = meaning
        return member

    def __str__(self) -> str:
        """The id itself."""
        return str.__str__(self._value_)

    CLIENT_GATE = (
        "client-gate",
        "client",
        "the client itself held the request back (its own concurrency limit, pool or semaphore)",
    )
    CLIENT_BUFFERED_STREAM = (
        "client-buffered-stream",
        "client",
        "the server streamed, the client or a proxy saw it late or in lumps",
    )
    FRONTEND = (
        "frontend",
        "frontend",
        "time before the engine's queue: HTTP handling, tokenising, media decoding, a blocked event loop",
    )
    SLOTS_FULL = ("slots-full", "queue", "the cap on concurrent sequences binds while the device has room")
    KV_FULL = ("kv-full", "queue", "no free KV blocks to admit the request")
    OVERLOAD = (
        "overload",
        "queue",
        "more load is offered than the engine can serve at all: the queue never drains",
    )
    TOKEN_BUDGET = (
        "token-budget",
        "queue",
        "the per-step token budget, or one long prompt at its head, holds the others back",
    )
    GRAMMAR_COMPILE = ("grammar-compile", "queue", "a grammar or schema is being compiled")
    WARM_UP = ("warm-up", "prefill", "compilation, autotuning or graph capture on first use")
    LONG_PROMPT = (
        "long-prompt",
        "prefill",
        "prefill runs at what the device can do: only fewer new tokens or more compute help",
    )
    PREFIX_NOT_REUSED = ("prefix-not-reused", "prefill", "a shared prefix is computed again and again")
    SMALL_PREFILL_CHUNK = (
        "small-prefill-chunk",
        "prefill",
        "the chunk budget is so small that each chunk pays a whole weight read",
    )
    PADDING = ("padding", "prefill", "computed tokens are padding")
    LONG_OUTPUT = (
        "long-output",
        "decode",
        "the number of output tokens owns the time; the rate is what the device can do",
    )
    BANDWIDTH_BOUND = (
        "bandwidth-bound",
        "decode",
        "each step runs near the time to read weights and KV once",
    )
    LAUNCH_BOUND = (
        "launch-bound",
        "decode",
        "step time is flat over batch and far above the floor: per-step host and launch overhead",
    )
    SMALL_BATCH = (
        "small-batch",
        "decode",
        "the device could carry many more sequences per weight read (goal: throughput)",
    )
    PREFILL_INTERFERENCE = (
        "prefill-interference",
        "decode",
        "steps are stretched by other requests' prefill",
    )
    PREEMPTION = ("preemption", "decode", "requests are evicted and recomputed")
    WEIGHT_OFFLOAD = ("weight-offload", "decode", "weights cross a slow link every step")
    NO_KV_CACHE = ("no-kv-cache", "decode", "each step recomputes the whole prefix")
    SLOW_KERNEL = ("slow-kernel", "decode", "a dtype or quantisation path that is slower than the plain one")
    SPECULATION_LOSS = ("speculation-loss", "decode", "drafting costs more than the accepted tokens save")
    LOGITS_PROCESSING = (
        "logits-processing",
        "decode",
        "grammar masks, penalties, logprobs or sampling after the forward pass",
    )
    LORA = ("lora", "decode", "unmerged adapters")
    MANY_SEQUENCES = ("many-sequences", "decode", "beams, n or best_of multiply the work")
    INTERCONNECT = ("interconnect", "decode", "communication between devices")
    KV_GROWTH = ("kv-growth", "decode", "reading the KV cache of long contexts owns the step")
    HOST_GAP = (
        "host-gap",
        "host",
        "the device waits for the scheduler, the detokeniser or Python between steps",
    )
    GC_PAUSE = ("gc-pause", "host", "periodic stalls from the garbage collector")
    CPU_STARVED = ("cpu-starved", "host", "too few cores or badly bound threads")
    STREAM_CONSUMER = ("stream-consumer", "host", "handing tokens to the user holds the loop back")
    DATA_DEFECT = (
        "data-defect",
        "none",
        "the numbers contradict each other or physics: refused, with the contradiction named",
    )
    UNKNOWN = ("unknown", "none", "the evidence does not separate the causes; says what to measure next")
    HEALTHY = ("healthy", "none", "within what the device and the load allow")
