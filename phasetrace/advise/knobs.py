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
    Cause.LAUNCH_BOUND: {
        "vllm": ("# leave out --enforce-eager",),
        "sglang": ("# leave out --disable-cuda-graph; --cuda-graph-max-bs N", "--enable-torch-compile"),
        "tgi": ("--cuda-graphs 1,2,4,8,16,32",),
        "tensorrt-llm": ("cuda_graph_config: {enable_padding: true}",),
        "transformers": (
            'model.generation_config.cache_implementation = "static"\n'
            'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
        ),
    },
    Cause.BANDWIDTH_BOUND: {
        "vllm": ("--quantization fp8",),
        "sglang": ("--quantization fp8",),
        "tgi": ("--quantize fp8",),
        "llama.cpp": ("llama-quantize model.gguf Q4_K_M",),
        "transformers": (
            "AutoModelForCausalLM.from_pretrained(..., quantization_config=TorchAoConfig(...))",
        ),
    },
    Cause.SMALL_BATCH: {
        "vllm": ("--max-num-seqs 64  # and as many requests open at the client",),
        "sglang": ("--max-running-requests 64  # and as many requests open at the client",),
        "llama.cpp": ("llama-server --parallel 8 --cont-batching",),
        "transformers": (
            "tokenizer(prompts[i:i + 16], padding=True, padding_side='left', return_tensors='pt')",
        ),
    },
    Cause.WEIGHT_OFFLOAD: {
        "vllm": ("--cpu-offload-gb 0 --quantization fp8",),
        "transformers": ("quantization_config=BitsAndBytesConfig(load_in_8bit=True), device_map={'': 0}",),
        "llama.cpp": ("llama-server --n-gpu-layers 999  # with a quantisation that fits",),
    },
    Cause.NO_KV_CACHE: {"transformers": ("model.generate(**inputs, use_cache=True)",)},
    Cause.SLOW_KERNEL: {
        "vllm": ("--dtype bfloat16", "--quantization awq_marlin  # or gptq_marlin, fp8"),
        "transformers": ("BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.bfloat16)",),
        "sglang": ("--dtype bfloat16 --quantization fp8",),
    },
    Cause.SPECULATION_LOSS: {
        "vllm": ("--speculative-config '{\"num_speculative_tokens\": 2, ...}'  # or leave it out",),
        "sglang": ("--speculative-num-steps 1 --speculative-num-draft-tokens 2  # or leave them out",),
        "transformers": (
            "assistant_model.generation_config.num_assistant_tokens = 2  # or no assistant_model",
        ),
        "llama.cpp": ("llama-server --draft-max 2  # or no --model-draft",),
    },
    Cause.LOGITS_PROCESSING: {
        "vllm": ("SamplingParams(repetition_penalty=1.0, logprobs=None)",),
        "sglang": ("--grammar-backend xgrammar",),
        "transformers": ("model.generate(**inputs, repetition_penalty=1.0)",),
    },
    Cause.MANY_SEQUENCES: {
        "vllm": ("SamplingParams(n=1)",),
        "transformers": ("model.generate(**inputs, num_beams=1, num_return_sequences=1)",),
    },
    Cause.INTERCONNECT: {
        "vllm": ("--tensor-parallel-size 1 --data-parallel-size N  # or --pipeline-parallel-size N",),
        "sglang": ("--tp-size 1 --dp-size N",),
        "tensorrt-llm": ("trtllm-serve --tp_size 1 --pp_size N",),
        "llama.cpp": ("llama-server --split-mode layer",),
    },
    Cause.KV_GROWTH: {
        "vllm": ("--kv-cache-dtype fp8",),
        "sglang": ("--kv-cache-dtype fp8_e5m2",),
        "llama.cpp": ("llama-server --cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on",),
        "transformers": ('model.generate(**inputs, cache_implementation="quantized")',),
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
