"""What engines call their settings, and the command that measures more.

Names as of vLLM 0.11 to 0.32, SGLang 0.5, TGI 3, TensorRT-LLM 1.0 (trtllm-serve), llama.cpp of 2025
(llama-server), transformers 4.46 to 5; so are the commands in `causes`.
"""

from __future__ import annotations

from phasetrace.model import Knobs, recordable

# What engines call the cap on sequences that run at once, and the tokens of one step.
CAPS = (
    "max_num_seqs",
    "max_running_requests",
    "max_batch_size",
    "max_concurrent_requests",
    "parallel",
    "n_parallel",
    "max_num_sequences",
    "max_batch_requests",
    "OLLAMA_NUM_PARALLEL",
    "num_parallel",
    "np",
)
BUDGETS = (
    "max_num_batched_tokens",
    "chunked_prefill_size",
    "max_prefill_tokens",
    "max_batch_prefill_tokens",
    "max_num_tokens",
    "n_ubatch",
    "ubatch_size",
    "prefill_chunk_size",
    "n_batch",
    "max_num_scheduled_tokens",
)
PARALLEL = ("tensor_parallel_size", "tp_size", "tp", "num_shard", "tensor_parallel")
BLOCKS = ("num_gpu_blocks",)  # KV blocks that the engine has


def first_number(knobs: Knobs, *names: str) -> float | None:
    """The first of these settings that is a number."""
    for name in names:
        value = knobs.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def to_record(engine: str) -> tuple[str, ...]:
    """What to type to measure more; empty for an engine that phasetrace does not record."""
    return ("phasetrace run -o trace.json -- python app.py",) if recordable(engine) else ()
