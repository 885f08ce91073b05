"""TensorRT-LLM: a span a request with three durations; -1 stands for what was not measured.

Names: `tensorrt_llm/llmapi/otel_tracing.py`. The span's own name is not fixed, so it is known by its scope or
its service.
"""

from phasetrace.read.dialects.dialect import Dialect, Written

_NAMES = ("tensorrt_llm", "tensorrt-llm", "trtllm")


def _is_request(written: Written) -> bool:
    attributes = written.span.attributes
    if "gen_ai.latency.kv_cache_transfer_time" in attributes:
        return True
    said = written.said_by.lower()
    named = any(name in said for name in _NAMES)
    return named and any(key.startswith("gen_ai.latency.") for key in attributes)


TENSORRT_LLM = Dialect(
    writer="TensorRT-LLM",
    engine="tensorrt-llm",
    is_request=_is_request,
    missing=-1,
    cannot="prefill and decode apart from the first token, the batch, cached tokens, single steps",
)
