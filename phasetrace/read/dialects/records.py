"""Records of requests that engines give out beside traces: the reader makes them all of one shape."""

from __future__ import annotations

from phasetrace.read.dialects.dialect import NANOSECOND, Count, Dialect, Duration, In

SCOPE = "record"  # of the spans that are made of records
_DURATIONS = {duration: (In(duration.value, NANOSECOND),) for duration in Duration}
_COUNTS = {count: (count.value,) for count in Count}


def _dialect(writer: str, engine: str, cannot: str) -> Dialect:
    return Dialect(
        writer=writer,
        engine=engine,
        is_request=lambda written: written.scope == SCOPE and written.span.name == writer,
        durations=_DURATIONS,
        counts=_COUNTS,
        told=frozenset(),
        missing=-1,
        cannot=cannot,
    )


LLAMA_CPP = _dialect(
    "llama.cpp's timings", "llama.cpp", "the queue, the batch, and when exactly a request came"
)
PERF_METRICS = _dialect("TensorRT-LLM's perf metrics", "tensorrt-llm", "the batch, tokens, single steps")
META_INFO = _dialect("SGLang's meta_info", "sglang", "the batch, single steps")
REQUEST_END = _dialect("Dynamo's request trace", "dynamo", "the batch, single steps")
REQUEST_METRICS = _dialect("vLLM's request metrics", "vllm", "the batch, preemptions, single steps")
RECORDS = (LLAMA_CPP, PERF_METRICS, META_INFO, REQUEST_END, REQUEST_METRICS)
