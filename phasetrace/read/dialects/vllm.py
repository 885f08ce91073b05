"""vLLM: one span a request, written when it has ended, with durations as attributes.

The time to the first token and e2e are the frontend's, on the wall clock. Queue, prefill and decode are the
engine core's, on its monotonic clock: as intervals they can be compared. The queue begins only after the step
that was running, so up to one step is in no phase; and preempted time is inside prefill or decode.
Names: `vllm/tracing/utils.py`; the child spans are those of its pull request 44402.
"""

from phasetrace.read.dialects.dialect import Dialect, Stage, Written

NAME = "llm_request"
_OTHERS = ("tensorrt", "trtllm")  # whose spans have the same name


# Spans of what it does before it serves -> the name that a recording has for that.
LOADING = {
    "Init device": "device-start",
    "Loading (GPU)": "model-load",
    "Loading (CPU)": "model-load",
    "Allocate KV cache": "kv-cache",
    "Warmup (GPU)": "warm-up",
    "Warmup (CPU)": "warm-up",
    "Compile graph": "compile",
    "Capture model": "graph-capture",
}
_FROM = "code.namespace"  # of the function


def is_loading(written: Written) -> bool:
    """Whether this is a part of vLLM's start."""
    return written.span.name in LOADING and str(written.span.attributes.get(_FROM)).startswith("vllm.")


def _is_request(written: Written) -> bool:
    if written.span.name != NAME:
        return False
    if written.scope.startswith("vllm"):
        return True
    said = written.said_by.lower()
    latencies = any(key.startswith("gen_ai.latency.") for key in written.span.attributes)
    return latencies and not any(other in said for other in _OTHERS)


VLLM = Dialect(
    writer="vLLM",
    engine="vllm",
    is_request=_is_request,
    stages={
        "vllm_queue": Stage.QUEUE,
        "vllm_prefill": Stage.PREFILL,
        "vllm_decode": Stage.DECODE,
        "vllm_preempted": Stage.PREEMPTED,
    },
    cannot="the batch, cached tokens, preemptions, single steps, and time before its frontend",
)
