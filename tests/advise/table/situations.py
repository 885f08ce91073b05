"""Tables made up from what is known of each cause: none is of a real report, each has a right reading."""

from typing import Any

A100 = {"name": "A100-SXM-80GB", "kind": "gpu", "count": 1}
H100 = {"name": "H100-SXM", "kind": "gpu", "count": 1}
L4 = {"name": "L4", "kind": "gpu", "count": 1}
RTX = {"name": "RTX 4090", "kind": "gpu", "count": 1}
L8B = {"name": "Llama-3.1-8B", "dtype": "bfloat16"}
L70B = {"name": "Llama-3.1-70B", "dtype": "bfloat16"}
Q7B = {"name": "Qwen2.5-7B", "dtype": "bfloat16"}
L13B = {"name": "Llama-2-13B", "dtype": "float16"}


def table(goal: str | None, *groups: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """A document; `engine` is a name or (name, knobs)."""
    engine = rest.pop("engine", None)
    named = (
        {"name": engine} if isinstance(engine, str) else engine and {"name": engine[0], "knobs": engine[1]}
    )
    labelled = [{"label": "ABCDEFGH"[i], **g} for i, g in enumerate(groups)]
    return {"phasetrace": "summary/1", "goal": goal, "engine": named, "groups": labelled, **rest}


def vllm(**knobs: Any) -> tuple[str, dict[str, Any]]:
    return "vllm", knobs


SITUATIONS: list[tuple[str, set[str], dict[str, Any]]] = [
    # --- client ---
    (
        "semaphore",
        {"client-gate"},
        table("e2e", {"client_wait_s": 6.0, "e2e_s": 2.0, "client_e2e_s": 8.0, "concurrency": 8}),
    ),
    (
        "never sent",
        {"client-gate"},
        table(
            "throughput",
            {
                "requests": 500,
                "concurrency": 200,
                "running": 10,
                "waiting": 0,
                "kv_cache_usage": 0.1,
                "gpu_utilization": 0.3,
            },
            engine=vllm(max_num_seqs=256),
        ),
    ),
    (
        "pool of ten",
        {"client-gate"},
        table(
            "ttft",
            {
                "concurrency": 100,
                "running": 10,
                "waiting": 0,
                "queue_s": 0.01,
                "prefill_s": 0.2,
                "client_ttft_s": 9.0,
                "client_wait_s": 8.6,
            },
        ),
    ),
    (
        "client total beyond the server's",
        {"client-gate", "client-buffered-stream"},
        table(
            "e2e",
            {
                "e2e_s": 2.1,
                "client_e2e_s": 9.4,
                "queue_s": 0.0,
                "prefill_s": 0.2,
                "decode_s": 1.9,
                "output_tokens": 100,
            },
        ),
    ),
    (
        "nginx buffers",
        {"client-buffered-stream"},
        table(
            "ttft",
            {
                "streaming": True,
                "ttft_s": 0.2,
                "client_ttft_s": 6.1,
                "e2e_s": 6.0,
                "client_e2e_s": 6.2,
                "output_tokens": 300,
            },
            engine="vllm",
        ),
    ),
    (
        "all at once",
        {"client-buffered-stream"},
        table(
            "ttft",
            {
                "streaming": True,
                "ttft_s": 7.9,
                "e2e_s": 8.0,
                "output_tokens": 400,
                "queue_s": 0.0,
                "prefill_s": 0.1,
            },
        ),
    ),
    (
        "lumps",
        {"client-buffered-stream"},
        table(
            "tpot",
            {
                "streaming": True,
                "tpot_s": 0.02,
                "itl_p50_s": 0.0001,
                "itl_p99_s": 0.6,
                "itl_max_s": 0.7,
                "output_tokens": 500,
            },
        ),
    ),
    # --- frontend ---
    (
        "media decoding",
        {"frontend"},
        table("ttft", {"frontend_s": 3.0, "queue_s": 0.01, "prefill_s": 0.4, "ttft_s": 3.41}, engine="vllm"),
    ),
    (
        "blocked loop",
        {"frontend"},
        table(
            "ttft",
            {
                "ttft_s": 4.0,
                "queue_s": 0.05,
                "prefill_s": 0.3,
                "concurrency": 64,
                "running": 20,
                "waiting": 0,
                "cpu_utilization": 0.5,
            },
        ),
    ),
    (
        "tokenising",
        {"frontend"},
        table("e2e", {"tokenize_s": 5.0, "e2e_s": 9.0, "prefill_s": 0.5, "decode_s": 3.4}),
    ),
    # --- queue ---
    (
        "few slots",
        {"slots-full"},
        table(
            "ttft",
            {
                "running": 8,
                "waiting": 40,
                "kv_cache_usage": 0.2,
                "queue_s": 9.0,
                "ttft_s": 9.4,
                "concurrency": 48,
            },
            engine=vllm(max_num_seqs=8),
        ),
    ),
    (
        "few slots, sglang",
        {"slots-full"},
        table(
            "throughput",
            {"running": 16, "waiting": 100, "kv_cache_usage": 0.3, "throughput_tok_s": 900},
            engine=("sglang", {"max_running_requests": 16}),
        ),
    ),
    (
        "slots compared",
        {"slots-full"},
        table(
            "throughput",
            {"knobs": {"max_num_seqs": 4}, "throughput_tok_s": 100},
            {"knobs": {"max_num_seqs": 32}, "throughput_tok_s": 500},
            engine="vllm",
        ),
    ),
    (
        "llama.cpp one slot",
        {"slots-full"},
        table(
            "ttft",
            {"concurrency": 8, "ttft_s": 21.0, "queue_s": 20.0},
            engine=("llama.cpp", {"n_parallel": 1}),
        ),
    ),
    (
        "cache full",
        {"kv-full"},
        table(
            "ttft",
            {
                "running": 20,
                "waiting": 60,
                "kv_cache_usage": 0.99,
                "preemptions": 0,
                "queue_s": 12.0,
                "ttft_s": 12.6,
            },
            engine=vllm(max_num_seqs=256),
        ),
    ),
    (
        "cache full by size",
        {"kv-full"},
        table(
            "throughput",
            {
                "concurrency": 64,
                "running": 9,
                "waiting": 55,
                "kv_cache_usage": 0.96,
                "prompt_tokens": 6000,
                "output_tokens": 500,
                "throughput_tok_s": 200,
            },
            engine=vllm(max_num_seqs=128),
            model=L8B,
            hardware=L4,
        ),
    ),
    (
        "ten offered, four served",
        {"overload"},
        table(
            "ttft",
            {
                "request_rate": 10,
                "request_throughput": 4.0,
                "ttft_s": 90.0,
                "queue_s": 88.0,
                "prefill_s": 0.4,
            },
            engine="vllm",
        ),
    ),
    (
        "saturated sweep",
        {"overload"},
        table(
            "ttft",
            {"request_rate": 4, "request_throughput": 3.9, "ttft_s": 0.3},
            {"request_rate": 8, "request_throughput": 6.0, "ttft_s": 9.0},
            {"request_rate": 16, "request_throughput": 6.1, "ttft_s": 60.0},
            engine="vllm",
        ),
    ),
    (
        "more clients, same tokens",
        {"overload"},
        table(
            "e2e",
            {"concurrency": 64, "throughput_tok_s": 2000, "e2e_s": 6.0},
            {"concurrency": 256, "throughput_tok_s": 2100, "e2e_s": 24.0},
            engine="vllm",
        ),
    ),
    (
        "budget too small",
        {"token-budget", "small-prefill-chunk"},
        table(
            "ttft",
            {
                "concurrency": 32,
                "running": 6,
                "waiting": 26,
                "kv_cache_usage": 0.2,
                "prompt_tokens": 4000,
                "queue_s": 12.0,
                "ttft_s": 13.0,
            },
            engine=vllm(max_num_batched_tokens=512, max_num_seqs=256),
        ),
    ),
    (
        "budget compared",
        {"token-budget", "small-prefill-chunk"},
        table(
            "ttft",
            {"concurrency": 32, "knobs": {"max_num_batched_tokens": 256}, "ttft_s": 9.0},
            {"concurrency": 32, "knobs": {"max_num_batched_tokens": 8192}, "ttft_s": 3.0},
            engine="vllm",
        ),
    ),
    (
        "behind a long prompt",
        {"token-budget", "prefill-interference"},
        table(
            "ttft",
            {"concurrency": 4, "prompt_tokens": 100, "ttft_s": 0.06},
            {"concurrency": 4, "prompt_tokens": 100, "prefilling_concurrently": 100000, "ttft_s": 11.0},
            engine="vllm",
        ),
    ),
    (
        "schema compiles",
        {"grammar-compile"},
        table(
            "ttft",
            {"grammar": "json", "grammar_compile_s": 4.0, "ttft_s": 4.3, "prefill_s": 0.1},
            engine="vllm",
        ),
    ),
    (
        "schema compiles, compared",
        {"grammar-compile"},
        table(
            "ttft",
            {"concurrency": 1, "ttft_s": 0.1, "tpot_s": 0.02},
            {"concurrency": 1, "grammar": "json", "ttft_s": 6.0, "tpot_s": 0.021},
            engine="vllm",
        ),
    ),
    (
        "new schema first",
        {"grammar-compile"},
        table(
            "ttft",
            {"order": "first", "grammar": "json", "ttft_s": 8.0},
            {"order": "later", "grammar": "json", "ttft_s": 0.08},
            engine="vllm",
        ),
    ),
    # --- prefill ---
    (
        "first call",
        {"warm-up"},
        table(
            "ttft",
            {"order": "first", "requests": 1, "ttft_s": 12.0, "prompt_tokens": 500},
            {"order": "later", "requests": 20, "ttft_s": 0.2, "prompt_tokens": 500},
            engine="vllm",
        ),
    ),
    (
        "first call, tokens",
        {"warm-up"},
        table(
            "throughput",
            {"order": "first", "throughput_tok_s": 3},
            {"order": "later", "throughput_tok_s": 60},
            engine="transformers",
        ),
    ),
    (
        "first has more to read",
        {"healthy", "long-prompt", "prefix-not-reused", "unknown"},
        table(
            "ttft",
            {"order": "first", "concurrency": 1, "ttft_s": 0.9, "prompt_tokens": 4000, "cached_tokens": 0},
            {
                "order": "later",
                "concurrency": 1,
                "ttft_s": 0.25,
                "prompt_tokens": 4000,
                "cached_tokens": 3000,
            },
            engine="vllm",
        ),
    ),
    (
        "long prompt alone",
        {"long-prompt"},
        table(
            "ttft",
            {
                "concurrency": 1,
                "prompt_tokens": 30000,
                "cached_tokens": 0,
                "ttft_s": 2.2,
                "prefill_s": 2.15,
                "queue_s": 0.0,
            },
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "rag",
        {"long-prompt"},
        table(
            "e2e",
            {
                "concurrency": 1,
                "prompt_tokens": 60000,
                "output_tokens": 20,
                "prefill_s": 6.5,
                "decode_s": 0.5,
                "queue_s": 0.0,
                "e2e_s": 7.0,
            },
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "prefix off",
        {"prefix-not-reused"},
        table(
            "ttft",
            {
                "prompt_tokens": 6000,
                "shared_prefix_tokens": 5500,
                "cached_tokens": 0,
                "prefill_s": 1.5,
                "ttft_s": 1.6,
                "queue_s": 0.05,
            },
            engine=vllm(enable_prefix_caching=False),
        ),
    ),
    (
        "timestamp in front",
        {"prefix-not-reused"},
        table(
            "ttft",
            {
                "prompt_tokens": 3000,
                "shared_prefix_tokens": 2800,
                "prefix_cache_hit_rate": 0.01,
                "ttft_s": 0.9,
                "prefill_s": 0.85,
            },
            engine=vllm(enable_prefix_caching=True),
        ),
    ),
    (
        "prefix compared",
        {"prefix-not-reused"},
        table(
            "ttft",
            {"knobs": {"enable_prefix_caching": False}, "ttft_s": 2.0},
            {"knobs": {"enable_prefix_caching": True}, "ttft_s": 0.4},
            engine="vllm",
        ),
    ),
    (
        "tiny chunks",
        {"small-prefill-chunk"},
        table(
            "ttft",
            {
                "concurrency": 1,
                "batch": 1,
                "prompt_tokens": 8000,
                "cached_tokens": 0,
                "prefill_s": 1.9,
                "ttft_s": 1.9,
                "tpot_s": 0.0148,
                "queue_s": 0.0,
            },
            engine=vllm(max_num_batched_tokens=64),
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "tiny chunks, compared",
        {"small-prefill-chunk"},
        table(
            "ttft",
            {"concurrency": 1, "knobs": {"chunked_prefill_size": 128}, "prompt_tokens": 16000, "ttft_s": 4.1},
            {
                "concurrency": 1,
                "knobs": {"chunked_prefill_size": 4096},
                "prompt_tokens": 16000,
                "ttft_s": 1.7,
            },
            engine="sglang",
        ),
    ),
    (
        "ubatch",
        {"small-prefill-chunk"},
        table(
            "ttft",
            {"concurrency": 1, "knobs": {"n_ubatch": 32}, "prompt_tokens": 4000, "ttft_s": 8.0},
            {"concurrency": 1, "knobs": {"n_ubatch": 512}, "prompt_tokens": 4000, "ttft_s": 2.5},
            engine="llama.cpp",
        ),
    ),
    (
        "padded to the maximum",
        {"padding"},
        table(
            "throughput",
            {"prompt_tokens": 90, "padded_prompt_tokens": 1024, "batch": 32, "e2e_s": 20.0},
            engine="transformers",
        ),
    ),
    (
        "padded, compared",
        {"padding"},
        table(
            "e2e",
            {"padded_prompt_tokens": 2048, "prompt_tokens": 200, "e2e_s": 9.0},
            {"padded_prompt_tokens": 220, "prompt_tokens": 200, "e2e_s": 3.0},
            engine="transformers",
        ),
    ),
    # --- decode: load ---
    (
        "reasoning",
        {"long-output"},
        table(
            "e2e",
            {
                "concurrency": 1,
                "prompt_tokens": 200,
                "output_tokens": 8000,
                "ttft_s": 0.05,
                "tpot_s": 0.0105,
                "e2e_s": 84.0,
            },
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "essay",
        {"long-output"},
        table(
            "e2e",
            {
                "prompt_tokens": 1000,
                "output_tokens": 2000,
                "queue_s": 0.1,
                "prefill_s": 0.3,
                "decode_s": 50.0,
                "e2e_s": 50.4,
            },
        ),
    ),
    (
        "one by one",
        {"small-batch", "client-gate"},
        table(
            "throughput",
            {
                "batch": 1,
                "concurrency": 1,
                "throughput_tok_s": 95,
                "tpot_s": 0.0105,
                "prompt_tokens": 200,
                "output_tokens": 300,
            },
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "batch sweep",
        {"small-batch"},
        table(
            "throughput",
            {"batch": 1, "throughput_tok_s": 40},
            {"batch": 8, "throughput_tok_s": 300},
            {"batch": 32, "throughput_tok_s": 1000},
            engine="transformers",
        ),
    ),
    (
        "prefill of a neighbour",
        {"prefill-interference"},
        table(
            "tpot",
            {"concurrency": 8, "tpot_s": 0.02},
            {"concurrency": 8, "tpot_s": 0.11, "prefilling_concurrently": 32000},
            engine="vllm",
        ),
    ),
    (
        "spikes",
        {"prefill-interference"},
        table(
            "tpot",
            {
                "concurrency": 32,
                "running": 30,
                "itl_p50_s": 0.018,
                "itl_p99_s": 0.42,
                "tpot_s": 0.03,
                "prompt_tokens": 4000,
                "output_tokens": 300,
            },
            engine=vllm(max_num_batched_tokens=8192),
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "evicted",
        {"preemption"},
        table(
            "throughput",
            {
                "requests": 300,
                "preemptions": 140,
                "kv_cache_usage": 0.99,
                "throughput_tok_s": 900,
                "running": 60,
            },
            engine=vllm(max_num_seqs=256),
        ),
    ),
    (
        "recomputed",
        {"preemption"},
        table(
            "e2e",
            {"recomputed_token_share": 0.35, "preemptions": 80, "e2e_s": 40.0, "kv_cache_usage": 1.0},
            engine="vllm",
        ),
    ),
    (
        "beams",
        {"many-sequences"},
        table(
            "e2e",
            {"sequences_per_request": 1, "e2e_s": 4.0},
            {"sequences_per_request": 8, "e2e_s": 11.0},
            engine="transformers",
        ),
    ),
    (
        "best of",
        {"many-sequences"},
        table(
            "tpot",
            {"sequences_per_request": 16, "concurrency": 1, "tpot_s": 0.04},
            {"sequences_per_request": 1, "concurrency": 1, "tpot_s": 0.021},
            engine="vllm",
        ),
    ),
    # --- decode: the step ---
    (
        "at the bound",
        {"bandwidth-bound"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.047, "prompt_tokens": 100, "output_tokens": 200},
            engine="vllm",
            model={"name": "Llama-2-70B", "dtype": "float16"},
            hardware={**A100, "count": 2},
        ),
    ),
    (
        "cpu at the bound",
        {"bandwidth-bound"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.105, "prompt_tokens": 60},
            engine="llama.cpp",
            model={
                "parameters": 8.03e9,
                "bytes_per_weight": 0.6,
                "layers": 32,
                "kv_heads": 8,
                "head_dim": 128,
                "quantization": "q4_k_m",
            },
            hardware={"kind": "cpu", "memory_bandwidth_gb_s": 60},
        ),
    ),
    (
        "eager",
        {"launch-bound"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.03},
            engine=vllm(enforce_eager=True),
            model={"name": "Qwen3-0.6B", "dtype": "bfloat16"},
            hardware=H100,
        ),
    ),
    (
        "eager, compared",
        {"launch-bound"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.024, "knobs": {"enforce_eager": True}},
            {"batch": 1, "tpot_s": 0.009, "knobs": {"enforce_eager": False}},
            engine="vllm",
            model=Q7B,
            hardware=A100,
        ),
    ),
    (
        "flat",
        {"launch-bound", "host-gap"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.028},
            {"batch": 16, "tpot_s": 0.029},
            engine="transformers",
            model=Q7B,
            hardware=H100,
        ),
    ),
    (
        "small model in transformers",
        {"launch-bound", "host-gap"},
        table(
            "e2e",
            {"batch": 1, "output_tokens": 500, "prompt_tokens": 30, "e2e_s": 13.0},
            engine="transformers",
            model={"name": "Qwen2.5-0.5B", "dtype": "bfloat16"},
            hardware=RTX,
        ),
    ),
    (
        "long contexts",
        {"kv-growth"},
        table(
            "tpot",
            {"batch": 32, "prompt_tokens": 12000, "output_tokens": 400, "tpot_s": 0.046},
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "context compared",
        {"kv-growth"},
        table(
            "tpot",
            {"batch": 1, "prompt_tokens": 1000, "tpot_s": 0.012},
            {"batch": 1, "prompt_tokens": 64000, "tpot_s": 0.031},
            engine="llama.cpp",
        ),
    ),
    # --- decode: set up wrongly ---
    (
        "does not fit",
        {"weight-offload"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 1.6},
            engine=("transformers", {"device_map": "auto"}),
            model={**L70B},
            hardware={**A100, "offloaded_gb": 68},
        ),
    ),
    (
        "some layers",
        {"weight-offload"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.25},
            engine=("llama.cpp", {"n_gpu_layers": 20}),
            model={"parameters": 32.5e9, "bytes_per_weight": 0.6, "layers": 60},
            hardware=RTX,
        ),
    ),
    (
        "offload compared",
        {"weight-offload"},
        table(
            "throughput",
            {"knobs": {"cpu_offload_gb": 10}, "throughput_tok_s": 4},
            {"knobs": {"cpu_offload_gb": 0}, "throughput_tok_s": 50},
            engine="vllm",
        ),
    ),
    (
        "cache off",
        {"no-kv-cache"},
        table(
            "e2e",
            {"prompt_tokens": 100, "output_tokens": 300, "e2e_s": 90.0},
            engine=("transformers", {"use_cache": False}),
        ),
    ),
    (
        "grows with the square",
        {"no-kv-cache"},
        table(
            "e2e",
            {"batch": 1, "prompt_tokens": 20, "output_tokens": 100, "e2e_s": 4.0},
            {"batch": 1, "prompt_tokens": 20, "output_tokens": 400, "e2e_s": 62.0},
            engine="transformers",
        ),
    ),
    (
        "cache compared",
        {"no-kv-cache"},
        table(
            "tpot",
            {"knobs": {"use_cache": False}, "tpot_s": 0.4},
            {"knobs": {"use_cache": True}, "tpot_s": 0.03},
            engine="transformers",
        ),
    ),
    (
        "quantised is slower",
        {"slow-kernel"},
        table(
            "tpot",
            {"batch": 1, "quantization": "gptq", "tpot_s": 0.06},
            {"batch": 1, "tpot_s": 0.03},
            engine="transformers",
            model=L13B,
            hardware=A100,
        ),
    ),
    (
        "awq throughput",
        {"slow-kernel"},
        table(
            "throughput",
            {"quantization": "awq", "concurrency": 64, "throughput_tok_s": 600},
            {"concurrency": 64, "throughput_tok_s": 1500},
            engine="vllm",
        ),
    ),
    (
        "half on a processor",
        {"slow-kernel"},
        table(
            "tpot",
            {"dtype": "bfloat16", "tpot_s": 1.3},
            {"dtype": "float32", "tpot_s": 0.4},
            engine="transformers",
            hardware={"kind": "cpu"},
        ),
    ),
    (
        "nf4",
        {"slow-kernel"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.12},
            engine="transformers",
            model={
                "name": "Llama-2-13B",
                "quantization": "bitsandbytes-nf4",
                "dtype": "float16",
                "bytes_per_weight": 0.55,
            },
            hardware=A100,
        ),
    ),
    (
        "two slower than one",
        {"interconnect"},
        table(
            "tpot",
            {"batch": 1, "devices": 1, "tpot_s": 0.02},
            {"batch": 1, "devices": 4, "tpot_s": 0.03},
            engine="vllm",
            hardware={"name": "RTX 3090", "kind": "gpu"},
        ),
    ),
    (
        "all-reduce",
        {"interconnect"},
        table(
            "tpot",
            {"batch": 8, "tpot_s": 0.05, "communication_s": 0.03},
            engine=vllm(tensor_parallel_size=8),
            hardware={"name": "L40S", "kind": "gpu", "count": 8},
        ),
    ),
    # --- decode: extras ---
    (
        "drafts",
        {"speculation-loss"},
        table(
            "tpot",
            {"batch": 1, "speculative_tokens": 8, "accepted_length": 1.3, "tpot_s": 0.019},
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "drafts compared",
        {"speculation-loss"},
        table(
            "throughput",
            {"concurrency": 64, "speculative_tokens": 4, "throughput_tok_s": 1500},
            {"concurrency": 64, "speculative_tokens": 0, "throughput_tok_s": 2300},
            engine="vllm",
        ),
    ),
    (
        "drafting time",
        {"speculation-loss"},
        table(
            "tpot",
            {"batch": 1, "speculative_tokens": 5, "accepted_length": 1.5, "tpot_s": 0.03, "draft_s": 0.03},
            engine="vllm",
        ),
    ),
    (
        "sampling",
        {"logits-processing"},
        table("tpot", {"batch": 64, "tpot_s": 0.05, "sampling_s": 0.03, "logprobs": 20}, engine="vllm"),
    ),
    (
        "logprobs compared",
        {"logits-processing"},
        table(
            "throughput", {"logprobs": 20, "throughput_tok_s": 300}, {"throughput_tok_s": 900}, engine="vllm"
        ),
    ),
    (
        "grammar mask",
        {"logits-processing"},
        table(
            "tpot",
            {"grammar": "outlines", "batch": 32, "tpot_s": 0.2},
            {"batch": 32, "tpot_s": 0.03},
            engine="vllm",
        ),
    ),
    (
        "adapters",
        {"lora"},
        table(
            "throughput",
            {"lora_adapters": 4, "throughput_tok_s": 700},
            {"lora_adapters": 0, "throughput_tok_s": 1100},
            engine="vllm",
        ),
    ),
    (
        "one adapter",
        {"lora"},
        table(
            "tpot",
            {"batch": 1, "lora_adapters": 1, "tpot_s": 0.03},
            {"batch": 1, "tpot_s": 0.012},
            engine="vllm",
        ),
    ),
    # --- host ---
    (
        "scheduler",
        {"host-gap"},
        table(
            "tpot",
            {"batch": 128, "tpot_s": 0.04, "host_gap_s": 0.018},
            engine="vllm",
            model=L8B,
            hardware=H100,
        ),
    ),
    (
        "idle device",
        {"host-gap"},
        table(
            "throughput",
            {"batch": 64, "tpot_s": 0.035, "gpu_utilization": 0.35, "cpu_utilization": 0.3},
            engine="vllm",
            model=L8B,
            hardware=H100,
        ),
    ),
    (
        "collector",
        {"gc-pause"},
        table(
            "tpot", {"tpot_s": 0.02, "itl_max_s": 0.9, "stall_s": 0.8, "stall_period_s": 20.0}, engine="vllm"
        ),
    ),
    (
        "two cores",
        {"cpu-starved"},
        table(
            "tpot",
            {"batch": 32, "tpot_s": 0.04, "cpu_cores": 2, "cpu_utilization": 1.0, "gpu_utilization": 0.3},
            engine="vllm",
            model=L8B,
            hardware=H100,
        ),
    ),
    (
        "threads",
        {"cpu-starved"},
        table(
            "tpot",
            {"threads": 64, "tpot_s": 0.5},
            {"threads": 16, "tpot_s": 0.12},
            engine="llama.cpp",
            hardware={"kind": "cpu"},
        ),
    ),
    (
        "too many threads",
        {"cpu-starved"},
        table(
            "tpot",
            {"threads": 96, "cpu_cores": 24, "tpot_s": 0.5},
            engine="transformers",
            hardware={"kind": "cpu"},
        ),
    ),
    (
        "renders each token",
        {"stream-consumer"},
        table("tpot", {"streaming": True, "tpot_s": 0.09, "stream_s": 0.06}, engine="transformers"),
    ),
    (
        "stream compared",
        {"stream-consumer"},
        table(
            "e2e",
            {"streaming": True, "e2e_s": 30.0},
            {"streaming": False, "e2e_s": 12.0},
            engine="transformers",
        ),
    ),
    # --- data ---
    (
        "p99 below the middle",
        {"data-defect"},
        table("ttft", {"ttft_s": 2.0, "ttft_p95_s": 1.5, "ttft_p99_s": 0.4}),
    ),
    (
        "faster than memory",
        {"data-defect"},
        table("tpot", {"batch": 1, "tpot_s": 0.002}, model=L70B, hardware=A100),
    ),
    (
        "cached beyond the prompt",
        {"data-defect"},
        table("ttft", {"prompt_tokens": 100, "cached_tokens": 900, "ttft_s": 0.1}),
    ),
    ("usage above one", {"data-defect"}, table("ttft", {"kv_cache_usage": 97.0, "ttft_s": 1.0})),
    ("first token after the last", {"data-defect"}, table("ttft", {"ttft_s": 4.0, "e2e_s": 1.0})),
    (
        "more than can be",
        {"data-defect"},
        table("throughput", {"concurrency": 1, "tpot_s": 0.02, "throughput_tok_s": 5000}),
    ),
    (
        "more served than open",
        {"data-defect"},
        table("throughput", {"concurrency": 2, "e2e_s": 10.0, "request_throughput": 4.0}),
    ),
    ("errors", {"data-defect"}, table("e2e", {"requests": 100, "succeeded": 3, "e2e_s": 0.02})),
    # --- no fault to be told ---
    ("only a total", {"unknown"}, table("e2e", {"e2e_s": 12.0})),
    ("only a rate", {"unknown"}, table("tpot", {"throughput_tok_s": 12.0}, engine="vllm")),
    ("slow for no reason told", {"unknown"}, table("tpot", {"concurrency": 1, "tpot_s": 0.2}, engine="vllm")),
    (
        "slow, device known",
        {"unknown"},
        table("tpot", {"batch": 1, "tpot_s": 0.09}, engine="vllm", model=Q7B, hardware=H100),
    ),
    (
        "high ttft under load",
        {"unknown"},
        table("ttft", {"concurrency": 32, "ttft_s": 7.0, "prompt_tokens": 2000}, engine="vllm"),
    ),
    (
        "two machines",
        {"unknown"},
        table("throughput", {"throughput_tok_s": 40}, {"throughput_tok_s": 14}, engine="vllm"),
    ),
    (
        "upgrade",
        {"unknown"},
        table("ttft", {"concurrency": 8, "ttft_s": 0.4}, {"concurrency": 8, "ttft_s": 1.9}, engine="vllm"),
    ),
    (
        "fine",
        {"healthy"},
        table(
            None,
            {
                "concurrency": 1,
                "batch": 1,
                "prompt_tokens": 500,
                "output_tokens": 100,
                "queue_s": 0.0,
                "prefill_s": 0.04,
                "tpot_s": 0.0108,
                "ttft_s": 0.045,
                "e2e_s": 1.11,
            },
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    # --- further ---
    (
        "fp32 T4",
        {"slow-kernel"},
        table(
            "throughput",
            {"dtype": "float32", "throughput_tok_s": 8},
            {"dtype": "float16", "throughput_tok_s": 15},
            engine="transformers",
            hardware={"name": "T4", "kind": "gpu"},
        ),
    ),
    (
        "chunked off tpot",
        {"prefill-interference"},
        table(
            "tpot",
            {"concurrency": 16, "knobs": {"enable_chunked_prefill": False}, "tpot_s": 0.09},
            {"concurrency": 16, "knobs": {"enable_chunked_prefill": True}, "tpot_s": 0.04},
            engine="vllm",
        ),
    ),
    (
        "big budget tpot",
        {"prefill-interference"},
        table(
            "tpot",
            {
                "concurrency": 16,
                "knobs": {"max_num_batched_tokens": 16384},
                "itl_p99_s": 0.9,
                "itl_p50_s": 0.02,
            },
            {
                "concurrency": 16,
                "knobs": {"max_num_batched_tokens": 512},
                "itl_p99_s": 0.09,
                "itl_p50_s": 0.03,
            },
            engine="vllm",
        ),
    ),
    (
        "overload+slots",
        {"overload", "slots-full"},
        table(
            "ttft",
            {
                "queue_s": 4.8,
                "ttft_s": 5.2,
                "running": 256,
                "kv_cache_usage": 0.55,
                "request_rate": 30,
                "request_throughput": 22,
            },
            engine=vllm(max_num_seqs=256),
        ),
    ),
    (
        "tail no load",
        {"unknown", "gc-pause"},
        table("tpot", {"itl_p50_s": 0.03, "itl_p99_s": 1.2}, engine="vllm"),
    ),
    (
        "tp4 4 cores",
        {"cpu-starved"},
        table(
            "tpot",
            {"batch": 16, "tpot_s": 0.08, "cpu_cores": 4, "cpu_utilization": 0.98, "gpu_utilization": 0.4},
            engine="vllm",
            model=L70B,
            hardware={**A100, "count": 4},
        ),
    ),
    (
        "few threads",
        {"cpu-starved"},
        table(
            "tpot",
            {"threads": 4, "cpu_cores": 32, "tpot_s": 0.6},
            engine="llama.cpp",
            hardware={"kind": "cpu"},
        ),
    ),
    (
        "t4 long",
        {"long-prompt"},
        table(
            "ttft",
            {"concurrency": 1, "prompt_tokens": 8000, "prefill_s": 3.2, "ttft_s": 3.25},
            engine="vllm",
            model={"name": "Llama-2-7B", "dtype": "float16"},
            hardware={"name": "T4", "kind": "gpu", "count": 1},
        ),
    ),
    (
        "slow prefill unexplained",
        {"unknown", "warm-up"},
        table(
            "ttft",
            {"concurrency": 1, "prompt_tokens": 512, "cached_tokens": 0, "prefill_s": 2.5, "ttft_s": 2.55},
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "post engine",
        {"host-gap", "stream-consumer", "frontend"},
        table(
            "e2e",
            {"post_engine_s": 3.0, "e2e_s": 8.0, "decode_s": 4.5, "prefill_s": 0.4, "queue_s": 0.1},
            engine="vllm",
        ),
    ),
    (
        "unattributed",
        {"unknown", "frontend"},
        table(
            "e2e",
            {"queue_s": 0.0, "prefill_s": 0.2, "decode_s": 2.0, "e2e_s": 12.0, "output_tokens": 100},
            engine="vllm",
        ),
    ),
    (
        "queue only",
        {"unknown", "overload"},
        table(
            "ttft",
            {"queue_s": 6.0, "prefill_s": 0.5, "decode_s": 4.0, "requests": 1},
        ),
    ),
    (
        "connection limit",
        {"client-gate"},
        table(
            "throughput",
            {"concurrency": 512, "knobs": {"connection_limit": 100}, "throughput_tok_s": 2000},
            {"concurrency": 512, "knobs": {"connection_limit": 1024}, "throughput_tok_s": 6000},
            engine="vllm",
        ),
    ),
    (
        "weights do not fit vllm",
        {"data-defect"},
        table("tpot", {"batch": 1, "tpot_s": 0.09}, engine="vllm", model=L70B, hardware=A100),
    ),
    (
        "running above cap",
        {"data-defect"},
        table("ttft", {"running": 90, "ttft_s": 1.0}, engine=vllm(max_num_seqs=32)),
    ),
    (
        "mamba no cache pair",
        {"no-kv-cache"},
        table(
            "e2e",
            {"batch": 1, "prompt_tokens": 10, "output_tokens": 64, "e2e_s": 3.0},
            {"batch": 1, "prompt_tokens": 10, "output_tokens": 512, "e2e_s": 170.0},
            engine="transformers",
        ),
    ),
    (
        "exllama vs plain",
        {"slow-kernel"},
        table(
            "throughput",
            {"quantization": "int8", "batch": 1, "throughput_tok_s": 6},
            {"quantization": "none", "batch": 1, "throughput_tok_s": 22},
            engine="transformers",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "quantised large batch",
        {"slow-kernel"},
        table(
            "throughput",
            {"quantization": "awq", "concurrency": 128, "throughput_tok_s": 1900},
            {"quantization": None, "concurrency": 128, "throughput_tok_s": 3800},
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "sweep with spec",
        {"speculation-loss"},
        table(
            "throughput",
            {"concurrency": 1, "speculative_tokens": 0, "throughput_tok_s": 60},
            {"concurrency": 1, "speculative_tokens": 5, "throughput_tok_s": 110},
            {"concurrency": 64, "speculative_tokens": 0, "throughput_tok_s": 2200},
            {"concurrency": 64, "speculative_tokens": 5, "throughput_tok_s": 1500},
            engine="vllm",
        ),
    ),
    (
        "offered sweep healthy",
        {"healthy", "unknown", "bandwidth-bound"},
        table(
            None,
            {"request_rate": 1, "ttft_s": 0.1, "tpot_s": 0.0145},
            {"request_rate": 4, "ttft_s": 0.12, "tpot_s": 0.0155},
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "hbm throughput big batch",
        {"bandwidth-bound", "healthy", "kv-growth"},
        table(
            "throughput",
            {
                "batch": 128,
                "tpot_s": 0.022,
                "prompt_tokens": 300,
                "output_tokens": 200,
                "throughput_tok_s": 5800,
            },
            engine="vllm",
            model=L8B,
            hardware=A100,
        ),
    ),
    (
        "moe",
        {"bandwidth-bound", "unknown"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.0062, "prompt_tokens": 100},
            engine="vllm",
            model={"name": "Qwen3-30B-A3B", "dtype": "bfloat16"},
            hardware=H100,
        ),
    ),
    (
        "moe eager",
        {"launch-bound"},
        table(
            "tpot",
            {"batch": 1, "tpot_s": 0.045},
            engine=vllm(enforce_eager=True),
            model={"name": "Qwen3-30B-A3B", "dtype": "bfloat16"},
            hardware=H100,
        ),
    ),
    (
        "prefix same prompt",
        {"prefix-not-reused"},
        table(
            "ttft",
            {"order": "first", "concurrency": 1, "prompt_tokens": 9000, "ttft_s": 1.5},
            {
                "order": "later",
                "concurrency": 1,
                "prompt_tokens": 9000,
                "shared_prefix_tokens": 8900,
                "ttft_s": 1.45,
            },
            engine="sglang",
        ),
    ),
    (
        "beam single",
        {"many-sequences"},
        table(
            "e2e",
            {"sequences_per_request": 5, "batch": 5, "e2e_s": 9.0, "output_tokens": 200},
            engine=("transformers", {"num_beams": 5}),
        ),
    ),
    (
        "stream none",
        {"unknown"},
        table("e2e", {"streaming": True, "e2e_s": 3.0}, {"e2e_s": 2.0}, engine="vllm"),
    ),
    (
        "kv contrast",
        {"kv-full"},
        table(
            "throughput",
            {"knobs": {"gpu_memory_utilization": 0.5}, "throughput_tok_s": 900},
            {"knobs": {"gpu_memory_utilization": 0.92}, "throughput_tok_s": 2000},
            engine="vllm",
        ),
    ),
    (
        "async",
        {"host-gap"},
        table(
            "throughput",
            {"knobs": {"async_scheduling": False}, "throughput_tok_s": 900},
            {"knobs": {"async_scheduling": True}, "throughput_tok_s": 1200},
            engine="vllm",
        ),
    ),
    (
        "batch 1 on cpu throughput",
        {"small-batch", "client-gate"},
        table(
            "throughput",
            {"batch": 1, "concurrency": 1, "throughput_tok_s": 9},
            engine="vllm",
            hardware={"kind": "cpu"},
        ),
    ),
    (
        "mean of errors",
        {"data-defect"},
        table("throughput", {"requests": 200, "succeeded": 20, "throughput_tok_s": 90}),
    ),
    (
        "long ttft with waiting none",
        {"frontend", "client-gate", "unknown", "cpu-starved"},
        table(
            "ttft",
            {
                "ttft_s": 9.0,
                "concurrency": 200,
                "running": 40,
                "waiting": 0,
                "gpu_utilization": 0.3,
                "cpu_utilization": 1.0,
            },
            engine="vllm",
        ),
    ),
    (
        "itl spikes single user",
        {"gc-pause", "unknown", "host-gap"},
        table(
            "tpot", {"concurrency": 1, "itl_p50_s": 0.02, "itl_p99_s": 0.4, "itl_max_s": 0.9}, engine="vllm"
        ),
    ),
]
