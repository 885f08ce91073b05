"""SGLang: a root span a request with vLLM's attributes, and a span a stage under spans of its threads.

Its `time_in_model_prefill` and `time_in_model_inference` have vLLM's names and another meaning: they begin
when the request was dispatched to the scheduler, so the queue is in them.
Names: `python/sglang/srt/observability/`.
"""

from phasetrace.read.dialects.dialect import Dialect, Stage, Written

MODULE = "sglang::request"


def _is_request(written: Written) -> bool:
    attributes = written.span.attributes
    if attributes.get("module") == MODULE:
        return True
    service = str(written.resource.get("service.name", ""))
    return "rid" in attributes and ("sglang" in service or "Req " in written.span.name)


SGLANG = Dialect(
    writer="SGLang",
    engine="sglang",
    is_request=_is_request,
    stages={
        "prefill_waiting": Stage.QUEUE,
        "prefill_forward": Stage.PREFILL,
        "chunked_prefill": Stage.PREFILL,
        "decode_forward": Stage.DECODE,
    },
    prefill_holds_queue=True,
    cannot="the batch, single steps of a decode, and time before its tokenizer has the request",
)
