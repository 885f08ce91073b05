"""A table of numbers, where there is no recording (`summary/1`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

Knobs = Mapping[str, bool | int | float | str]


class Goal(StrEnum):
    """The metric that the user wants better."""

    TTFT = "ttft"
    TPOT = "tpot"
    E2E = "e2e"
    THROUGHPUT = "throughput"


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
