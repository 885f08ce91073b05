"""Keys of attributes."""

from __future__ import annotations

from phasetrace.semconv.described import Described


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
        "why a token came much later than the others; a link leads to the request that caused it. Known when"
        " the run is over: `export` tells it, spans that are sent live do not",
    )
    STALL_USUAL = ("phasetrace.token.stall.usual", "us", "the usual wait for a token of this request")

    # of steps
    STEPS_STREAM = ("phasetrace.steps.stream", "", "the stream they belong to")
    STEPS_FIRST = ("phasetrace.steps.first", "", "index of the first one in its stream")
    STEPS_SINCE = ("phasetrace.steps.since", "ns", "when the first began, since the epoch")
    STEPS_TABLE = (
        "phasetrace.steps.table",
        "",
        "packed: each step's wait for the end of the one before, its duration, and `columns`",
    )
    STEPS_COLUMNS = ("phasetrace.steps.columns", "", "what else the table tells of each step")
    STEPS_PART_TABLE = (
        "phasetrace.steps.part_table",
        "ns",
        "packed: time of each of `parts` in each step; of the last, what the step has beyond all of them",
    )
    STEPS_PARTS = ("phasetrace.steps.parts", "", "the parts that they have")
    # of files from before 0.1, in which each column was an attribute
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
