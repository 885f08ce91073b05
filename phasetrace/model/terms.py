"""The words that records use: phases, parts, reasons, how a number is known, how a request ended."""

from __future__ import annotations

from enum import StrEnum


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
    GRAMMAR = "grammar"  # until its grammar was compiled
    SCHEDULER = "scheduler"
    # What a shared forward is split into, where the cost of a step is known (`analyze/step_model.py`); the
    # rest of it stays `forward`, which in prefill is the request's own:
    FLOOR = "floor"  # what the step takes for this request alone: weights and its own KV read once
    PEERS = "peers"  # more for the other sequences that decode in it
    OTHERS_PREFILL = "others-prefill"  # more for the prompt tokens of others that it reads
    RECOMPUTE = "recompute"  # reading its own tokens again after a preemption
    BETWEEN_CHUNKS = "between-chunks"  # steps without a chunk of its own, before its first token
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


class Usage(StrEnum):
    """What a process or a device uses, looked at from outside now and then."""

    CPU = "cpu"  # ns of CPU time since the process began, user and system
    CPU_DELAY = "cpu-delay"  # ns in which threads that live now could have run and had no CPU
    MEMORY = "memory"  # bytes: resident, or in use on a device
    THREADS = "threads"
    DEVICE_BUSY = "device-busy"  # percent of the time
    DEVICE_CLOCK = "device-clock"  # MHz


# Engines that others' traces tell of, and that `phasetrace run` does not record: it is no advice for them.
_UNRECORDED = frozenset(("dynamo", "llama.cpp", "sglang", "tensorrt-llm", "tgi", "triton"))


def recordable(engine: str) -> bool:
    """Whether `phasetrace run` may tell more of an engine; so for a service whose engine is not known."""
    return engine not in _UNRECORDED
