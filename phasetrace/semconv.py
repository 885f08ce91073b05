"""The one list of names that others see: spans, attributes, metrics, causes; with units and meanings.

Names follow the OpenTelemetry GenAI conventions where those have one; what they lack is under `phasetrace.*`.
"""

from __future__ import annotations

from enum import Enum, StrEnum


class Described(str, Enum):
    """A string with a unit (UCUM, "" where none) and a meaning: `NAME = ("key", "unit", "meaning")`."""

    unit: str
    meaning: str

    def __new__(cls, value: str, unit: str, meaning: str) -> Described:
        """Make the member equal to its key."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.unit = unit
        member.meaning = meaning
        return member

    def __str__(self) -> str:
        """The key itself, so that it can be formatted and written as such."""
        return str.__str__(self._value_)


class Scope(Described):
    """Instrumentation scopes: who made a span."""

    ALL = ("phasetrace", "", "requests, and what is needed to make all other spans again (files only)")
    PHASES = ("phasetrace.phases", "", "spans of phases, which in a file can be made again from its steps")
    TOKENS = ("phasetrace.tokens", "", "spans of tokens, which in a file can be made again from its steps")


class SpanName(Described):
    """What spans are called. The span of a request itself is named `{operation} {model}`."""

    FRONTEND = (
        "frontend",
        "",
        "from the request's arrival until the engine has it: the application, tokenising",
    )
    QUEUE = ("queue", "", "the engine has the request and has not begun it")
    PREFILL = ("prefill", "", "from the first step until the first token")
    PREFILL_CHUNK = ("prefill chunk", "", "one step that read a part of the prompt")
    DECODE = ("decode", "", "from the first token until the last one")
    DECODE_CHUNK = (
        "decode chunk",
        "",
        "a stretch of a decode whose token times do not fit into one attribute",
    )
    TOKEN = ("token", "", "the wait for one token, or for a run of unremarkable ones")
    PREEMPTED = ("preempted", "", "the engine had put the request aside for others")
    DELIVERY = ("delivery", "", "from the last token until the user had it")
    STEPS = ("phasetrace.steps", "", "up to 1,024 steps of an engine, column by column (files only)")
    PAUSES = ("phasetrace.pauses", "", "stops of a whole process, column by column (files only)")
    SAMPLES = ("phasetrace.samples", "", "what a process or a device used, column by column (files only)")
    STAGE = ("phasetrace.stage", "", "a part of an engine's start: loading a model, warming up")
    PROCESS = (
        "phasetrace.process",
        "",
        "what a recorded process ran, and what recording it cost (files only)",
    )
    MODEL = ("phasetrace.model", "", "a model's shape (files only)")
    RUN = ("phasetrace.run", "", "the recording as a whole (files only)")

    @property
    def scope(self) -> Scope:
        """The scope of its spans."""
        if self is SpanName.TOKEN:
            return Scope.TOKENS
        return Scope.ALL if self.startswith("phasetrace.") else Scope.PHASES


# What is shown to people and worked out again when a file is read.
DERIVED_SPANS = frozenset(name for name in SpanName if name.scope is not Scope.ALL)


class Attribute(Described):
    """Keys of attributes. One that ends in a dot is a prefix, followed by a name of the engine's own."""

    # of the conventions
    SERVICE_NAME = ("service.name", "", "the application")
    ERROR_TYPE = ("error.type", "", "type of the exception that ended the request")
    PROCESS_PID = ("process.pid", "", "process id")
    PROCESS_PARENT_PID = ("process.parent_pid", "", "process id of the parent")
    PROCESS_EXECUTABLE = ("process.executable.name", "", "basename of the executable")
    PROCESS_PYTHON = ("process.runtime.version", "", "version of Python")
    OPERATION = ("gen_ai.operation.name", "", "chat, text_completion, ...")
    PROVIDER = ("gen_ai.provider.name", "", "the engine: transformers, vllm, ...")
    REQUEST_MODEL = ("gen_ai.request.model", "", "name of the model")
    REQUEST_MAX_TOKENS = ("gen_ai.request.max_tokens", "{token}", "cap on output tokens")
    REQUEST_CHOICES = ("gen_ai.request.choice.count", "{choice}", "sequences asked for, where not one")
    REQUEST_STREAM = ("gen_ai.request.stream", "", "whether tokens were handed out one by one")
    REQUEST_ID = ("gen_ai.request.id", "", "the engine's own id of the request, else phasetrace's")
    FINISH_REASONS = (
        "gen_ai.response.finish_reasons",
        "",
        "why each sequence ended: stop, length, error, abort",
    )
    INPUT_TOKENS = ("gen_ai.usage.input_tokens", "{token}", "prompt tokens over all sequences, no padding")
    OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "{token}", "output tokens over all sequences")
    CACHE_READ = (
        "gen_ai.usage.cache_read.input_tokens",
        "{token}",
        "prompt tokens whose KV was there already",
    )
    NUM_SEQUENCES = ("gen_ai.usage.num_sequences", "{sequence}", "sequences of the request")
    LATENCY_QUEUE = ("gen_ai.latency.time_in_queue", "s", "received by the engine until first scheduled")
    LATENCY_TTFT = ("gen_ai.latency.time_to_first_token", "s", "arrival until the first token")
    LATENCY_E2E = ("gen_ai.latency.e2e", "s", "arrival until the end")
    LATENCY_PREFILL = ("gen_ai.latency.time_in_model_prefill", "s", "first scheduled until the first token")
    LATENCY_DECODE = ("gen_ai.latency.time_in_model_decode", "s", "first token until the last one")
    LATENCY_INFERENCE = (
        "gen_ai.latency.time_in_model_inference",
        "s",
        "first scheduled until the last token",
    )

    # of a request
    ID = ("phasetrace.request.id", "", "id of the request, unique in a recording")
    TRACE_ID = (
        "phasetrace.request.trace_id",
        "",
        "the trace it belongs to, where that trace had no room for it",
    )
    PARENT_SPAN_ID = ("phasetrace.request.parent_span_id", "", "its parent in that trace")
    EXTERNAL_ID = ("phasetrace.request.external_id", "", "the engine's own id of it")
    PROCESS_KEY = ("phasetrace.process.key", "", "the recorded process")
    MODEL_KEY = ("phasetrace.model.key", "", "the recorded model")
    MODE = ("phasetrace.request.mode", "", "greedy, sample, beam, assisted, prompt_lookup, ...")
    STATUS = ("phasetrace.request.status", "", "ok, failed, or cut-off with the recording")
    FINISH_REASON = ("phasetrace.request.finish_reason", "", "why the request as a whole ended")
    SENT = ("phasetrace.request.sent", "ns", "since the epoch: its client sent it")
    RECEIVED = ("phasetrace.request.received", "ns", "since the epoch: the engine had it")
    QUEUED = ("phasetrace.request.queued", "ns", "since the epoch: the engine's scheduler had it")
    SCHEDULED = ("phasetrace.request.scheduled", "ns", "since the epoch: its first step began")
    FIRST_TOKEN = ("phasetrace.request.first_token", "ns", "since the epoch: its first token was there")
    FIRST_OUTPUT = (
        "phasetrace.request.first_output",
        "ns",
        "since the epoch: the user had the first of the answer",
    )
    LAST_TOKEN = ("phasetrace.request.last_token", "ns", "since the epoch: its last token was there")
    FINISHED = ("phasetrace.request.finished", "ns", "since the epoch: the user had it all")
    TOKENIZE = ("phasetrace.request.tokenize", "ns", "tokenising, inside the frontend")
    DETOKENIZE = ("phasetrace.request.detokenize", "ns", "turning tokens into text, inside the delivery")
    STREAMED = ("phasetrace.request.streamed", "ns", "in the user's streamer, inside the delivery")
    CACHED_TOKENS = (
        "phasetrace.request.cached_tokens",
        "{token}",
        "prompt tokens that were not computed again",
    )
    EXTERNAL_CACHED_TOKENS = (
        "phasetrace.request.external_cached_tokens",
        "{token}",
        "prompt tokens whose KV was fetched from outside the engine",
    )
    GRAMMAR = ("phasetrace.request.grammar", "ns", "until its grammar was compiled, inside the queue")
    DISCARDED = (
        "phasetrace.request.discarded.",
        "{token}",
        "tokens sampled for it and not given out, by reason",
    )
    RECOMPUTED = (
        "phasetrace.request.recomputed",
        "",
        "packed: steps that read tokens again after a preemption, positions",
    )
    PROMPT_TOKENS = ("phasetrace.sequence.prompt_tokens", "{token}", "of each sequence, -1 where unknown")
    PADDING_TOKENS = ("phasetrace.sequence.padding_tokens", "{token}", "of each sequence, -1 where unknown")
    SEQUENCE_TOKENS = ("phasetrace.sequence.output_tokens", "{token}", "of each sequence, -1 where unknown")
    SEQUENCE_REASONS = ("phasetrace.sequence.finish_reasons", "", "of each sequence, empty where unknown")
    STREAM = ("phasetrace.request.stream", "", "the stream of steps it took part in")
    FIRST_STEP = ("phasetrace.request.first_step", "{step}", "its first step in that stream")
    LAST_STEP = ("phasetrace.request.last_step", "{step}", "its last step in that stream")
    PREFILL_CHUNKS = (
        "phasetrace.request.prefill_chunks",
        "",
        "packed: steps that read the prompt, positions",
    )
    YIELDS = ("phasetrace.request.yields", "", "packed: steps that gave other than one token, tokens")
    PREEMPTIONS = ("phasetrace.request.preemptions", "", "packed: begins and ends of preemptions")
    PREFIXES = ("phasetrace.request.prefixes", "", "packed: salted hashes of chunks of the prompt")
    DERIVED = ("phasetrace.request.derived", "", "fields that were worked out, not observed")
    SETTING = ("phasetrace.setting.", "", "a generation setting")
    SPANS_LEFT_OUT = (
        "phasetrace.spans_left_out",
        "{span}",
        "spans that the budget of the trace had no room for",
    )

    # of its children
    CHUNK_TOKENS = ("phasetrace.prefill.tokens", "{token}", "positions computed, padding included")
    CHUNK_COUNT = ("phasetrace.prefill.chunks", "{step}", "steps that read the prompt")
    ITL = ("phasetrace.decode.itl", "us", "the wait for each token after the first, in order; 1,024 at most")
    ITL_P50 = ("phasetrace.decode.itl_p50", "us", "median wait for a token")
    ITL_P99 = ("phasetrace.decode.itl_p99", "us", "99th percentile of the waits for a token")
    ITL_MAX = ("phasetrace.decode.itl_max", "us", "longest wait for a token")
    STALLS = ("phasetrace.decode.stalls", "{token}", "tokens that took more than 3 times the median")
    TOKEN_INDEX = (
        "phasetrace.token.index",
        "",
        "number of the first token of the span; the request's first is 0",
    )
    TOKEN_COUNT = ("phasetrace.token.count", "{token}", "tokens of one sequence in the span")
    STALL_CAUSE = (
        "phasetrace.token.stall.cause",
        "",
        "why a token came much later than the others; a link leads to the request that caused it",
    )
    STALL_USUAL = ("phasetrace.token.stall.usual", "us", "the usual wait for a token of this request")

    # of steps
    STEPS_STREAM = ("phasetrace.steps.stream", "", "the stream they belong to")
    STEPS_FIRST = ("phasetrace.steps.first", "", "index of the first one in its stream")
    STEPS_BEGIN = ("phasetrace.steps.begin", "ns", "packed: when each began, since the epoch")
    STEPS_DURATION = ("phasetrace.steps.duration", "ns", "packed: how long each took")
    STEPS_DEVICE = ("phasetrace.steps.device", "ns", "packed: time on the device, -1 where unknown")
    STEPS_RUNNING = ("phasetrace.steps.running", "{sequence}", "packed: sequences in each")
    STEPS_NEW = ("phasetrace.steps.new_tokens", "{token}", "packed: tokens given out by each")
    STEPS_COMPUTED = (
        "phasetrace.steps.computed_tokens",
        "{token}",
        "packed: input positions computed by each",
    )
    STEPS_WAITING = ("phasetrace.steps.waiting", "{request}", "packed: requests in the queue at each")
    STEPS_KV_BLOCKS = ("phasetrace.steps.kv_blocks", "{block}", "packed: KV blocks used at each")
    STEPS_WAITS = (
        "phasetrace.steps.waits",
        "",
        "packed: why the head of the queue waited: 0 nobody did, 1 slots, 2 KV blocks, 3 token budget, "
        "4 grammar, 5 remote KV, 6 LoRA, 7 paused, 8 other",
    )
    STEPS_PROPOSED = ("phasetrace.steps.proposed", "{token}", "packed: tokens speculated, verified in each")
    STEPS_ACCEPTED = ("phasetrace.steps.accepted", "{token}", "packed: speculated tokens that were right")
    STEPS_DISCARDED = ("phasetrace.steps.discarded", "{token}", "packed: tokens sampled and given to nobody")
    STEPS_PREEMPTED = (
        "phasetrace.steps.preempted",
        "{request}",
        "packed: requests that lost their place for each",
    )
    STEPS_ADAPTERS = ("phasetrace.steps.adapters", "{adapter}", "packed: distinct LoRA adapters in each")
    STEPS_PART = ("phasetrace.steps.part.", "ns", "packed: time of one part in each")

    # of pauses
    PAUSE_KIND = ("phasetrace.pauses.kind", "", "gc, ...")
    PAUSE_BEGIN = ("phasetrace.pauses.begin", "ns", "packed: when each began, since the epoch")
    PAUSE_DURATION = ("phasetrace.pauses.duration", "ns", "packed: how long each took")
    PAUSE_DETAIL = ("phasetrace.pauses.detail.", "", "packed: a number that goes with each")
    SAMPLE_DEVICE = ("phasetrace.samples.device", "", "which of the host's devices, where it is one")
    SAMPLE_TIME = ("phasetrace.samples.time", "ns", "packed: when it was looked at, since the epoch")
    SAMPLE_COLUMN = ("phasetrace.samples.of.", "", "packed: CPU time in ns, memory in bytes, ...")

    # of a process, a model, a run
    STAGE_NAME = ("phasetrace.stage.name", "", "model-load, warm-up, compile, graph-capture, ...")
    PROCESS_SCRIPT = ("phasetrace.process.script", "", "basename of the script")
    PROCESS_BEGIN = ("phasetrace.process.begin", "ns", "since the epoch: recording began")
    PROCESS_END = ("phasetrace.process.end", "ns", "since the epoch: last sign of life")
    PROCESS_ENGINE = ("phasetrace.process.engine.", "", "version of an engine that was recorded")
    PROCESS_REFUSED = ("phasetrace.process.refused.", "", "why an engine was not recorded")
    PROCESS_FACT = ("phasetrace.process.fact.", "", "a knob or a fact of the process")
    HOOK_CALLS = ("phasetrace.process.hook_calls", "{call}", "calls of recording hooks")
    HOOK_TIME = ("phasetrace.process.hook_time", "ns", "time inside recording hooks")
    LOST_RECORDS = ("phasetrace.process.lost_records", "{record}", "records that could not be kept")
    TROUBLES = ("phasetrace.process.troubles", "", "hooks that disabled themselves")
    UNCOVERED = ("phasetrace.process.uncovered", "", "Python children that ran without phasetrace")
    STATED = (
        "phasetrace.stated.",
        "",
        "in a resource, stated by users: engine.name, engine.knobs.*, model.*, hardware.*",
    )
    MODEL_FACT = ("phasetrace.model.fact.", "", "a fact of the model: parameters, weight_bytes, layers, ...")
    RUN_BEGIN = ("phasetrace.run.begin", "ns", "since the epoch")
    RUN_END = ("phasetrace.run.end", "ns", "since the epoch")
    RUN_SOURCE = ("phasetrace.run.source", "", "who recorded it")
    DEFECTS = ("phasetrace.run.defects", "", "what is missing in the data or contradicts")

    # of metrics
    PHASE = ("phasetrace.phase", "", "frontend, queue, prefill, decode, ...")
    TOKEN_KIND = ("phasetrace.token.kind", "", "prompt, cached (of the prompt) or output")
    WAIT_REASON = ("phasetrace.wait.reason", "", "slots, kv, budget, grammar, lora, ...")


class MetricKind(StrEnum):
    """How a metric adds up."""

    HISTOGRAM = "histogram"
    COUNTER = "counter"
    GAUGE = "gauge"


_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_STEPS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metric(Described):
    """Metrics: those of the GenAI conventions, with the buckets that they prescribe, then our own."""

    kind: MetricKind
    bounds: tuple[float, ...]

    def __new__(cls, value: str, unit: str, meaning: str, how: MetricKind | tuple[float, ...]) -> Metric:
        """Make the member equal to its name. Bucket bounds make it a histogram."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.unit = unit
        member.meaning = meaning
        member.kind = how if isinstance(how, MetricKind) else MetricKind.HISTOGRAM
        member.bounds = () if isinstance(how, MetricKind) else how
        return member

    @property
    def prometheus(self) -> str:
        """Its name in Prometheus, as OpenTelemetry specifies; a histogram's adds `_bucket` and so on."""
        unit = {"s": "_seconds", "By": "_bytes"}.get(self.unit, "")
        return self.replace(".", "_") + unit + ("_total" if self.kind is MetricKind.COUNTER else "")

    DURATION = ("gen_ai.server.request.duration", "s", "arrival of a request until its end", _SECONDS)
    TTFT = (
        "gen_ai.server.time_to_first_token",
        "s",
        "arrival of a request until its first token",
        (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    )
    TPOT = (
        "gen_ai.server.time_per_output_token",
        "s",
        "time per token after the first, of the longest sequence",
        (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5),
    )
    PHASE_DURATION = ("phasetrace.phase.duration", "s", "a request's time in one phase", _SECONDS)
    TOKENS = ("phasetrace.tokens", "{token}", "tokens of requests that ended, by kind", MetricKind.COUNTER)
    PREEMPTIONS = (
        "phasetrace.preemptions",
        "{preemption}",
        "times that a running request was put aside",
        MetricKind.COUNTER,
    )
    STEP_DURATION = ("phasetrace.step.duration", "s", "one step of an engine", _STEPS)
    QUEUE_BLOCKED = (
        "phasetrace.queue.blocked",
        "s",
        "time in which the head of an engine's queue had to wait, by reason",
        MetricKind.COUNTER,
    )
    PAUSED = ("phasetrace.paused", "s", "time in which a whole process stood still", MetricKind.COUNTER)
    CPU = ("phasetrace.process.cpu", "s", "CPU time that a process took", MetricKind.COUNTER)
    CPU_DELAY = (
        "phasetrace.process.cpu.delay",
        "s",
        "time in which threads could run and had no CPU",
        MetricKind.COUNTER,
    )
    MEMORY = ("phasetrace.process.memory", "By", "resident memory of a process", MetricKind.GAUGE)
    RUNNING = ("phasetrace.running", "{sequence}", "sequences in the last step", MetricKind.GAUGE)
    WAITING = ("phasetrace.waiting", "{request}", "requests in an engine's queue", MetricKind.GAUGE)
    KV_USAGE = ("phasetrace.kv_cache.usage", "{fraction}", "share of the KV blocks in use", MetricKind.GAUGE)


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
