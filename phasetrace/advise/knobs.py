"""The exact knob for a cause in a named engine: what to type. None where the engine has no such knob.

Names as of vLLM 0.11 to 0.32, SGLang 0.5, TGI 3, TensorRT-LLM 1.0 (trtllm-serve), llama.cpp of 2025
(llama-server), transformers 4.46 to 5.
"""

from __future__ import annotations

from phasetrace.model import Knobs as Settings
from phasetrace.model import recordable
from phasetrace.semconv import Cause

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
)
PARALLEL = ("tensor_parallel_size", "tp_size", "tp", "num_shard", "tensor_parallel")
BLOCKS = ("num_gpu_blocks",)  # KV blocks that the engine has

Knobs = dict[str, tuple[str, ...]]

KNOBS: dict[Cause, Knobs] = {
    Cause.SMALL_PREFILL_CHUNK: {
        "vllm": ("--max-num-batched-tokens 4096",),
        "sglang": ("--chunked-prefill-size 4096",),
        "tgi": ("--max-batch-prefill-tokens 4096",),
        "tensorrt-llm": ("trtllm-serve --max_num_tokens 4096",),
        "llama.cpp": ("llama-server --ubatch-size 1024 --batch-size 2048",),
    },
    Cause.PREFIX_NOT_REUSED: {
        "vllm": ("--enable-prefix-caching",),
        "sglang": ("# leave out --disable-radix-cache",),
        "tgi": ("PREFIX_CACHING=1",),
        "tensorrt-llm": ("kv_cache_config: {enable_block_reuse: true}",),
        "llama.cpp": ('"cache_prompt": true  # in the request', "llama-server --cache-reuse 256"),
        "transformers": (
            "with torch.no_grad():  # copy it for each prompt\n"
            "    past = model(prefix_ids, use_cache=True).past_key_values",
        ),
    },
    Cause.LONG_OUTPUT: {
        "vllm": ("SamplingParams(max_tokens=N)",),
        "sglang": ('{"max_new_tokens": N}',),
        "tgi": ('{"max_new_tokens": N}',),
        "llama.cpp": ('{"n_predict": N}',),
        "transformers": ("model.generate(**inputs, max_new_tokens=N)",),
    },
    Cause.SMALL_BATCH: {
        "vllm": ("--max-num-seqs 64  # and as many requests open at the client",),
        "sglang": ("--max-running-requests 64  # and as many requests open at the client",),
        "llama.cpp": ("llama-server --parallel 8 --cont-batching",),
        "transformers": (
            "tokenizer(prompts[i:i + 16], padding=True, padding_side='left', return_tensors='pt')",
        ),
    },
    Cause.NO_KV_CACHE: {"transformers": ("model.generate(**inputs, use_cache=True)",)},
    Cause.MANY_SEQUENCES: {
        "vllm": ("SamplingParams(n=1)",),
        "transformers": ("model.generate(**inputs, num_beams=1, num_return_sequences=1)",),
    },
    Cause.WARM_UP: {
        "vllm": (
            "VLLM_CACHE_ROOT=/persistent/path  # keeps compiled graphs; send a request of each shape"
            " at start",
        ),
        "sglang": ("# leave out --skip-server-warmup",),
        "transformers": ("model.generate(**one_prompt, max_new_tokens=8)  # once, before serving",),
    },
    Cause.PADDING: {
        "transformers": ('tokenizer(batch, padding="longest")  # batches sorted by length',),
    },
}


def first_number(knobs: Settings, *names: str) -> float | None:
    """The first of these settings that is a number."""
    for name in names:
        value = knobs.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def commands(cause: Cause, engine: str) -> tuple[str, ...]:
    """What to type for a cause in an engine; empty where that is not known."""
    return KNOBS.get(cause, {}).get(engine, ())


def to_record(engine: str) -> tuple[str, ...]:
    """What to type to measure more; empty for an engine that phasetrace does not record."""
    return ("phasetrace run -o trace.json -- python app.py",) if recordable(engine) else ()
