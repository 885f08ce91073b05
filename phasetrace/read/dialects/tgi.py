"""Text Generation Inference: a span a request, named by its handler, with durations as Rust prints them.

`time_per_token` is inference / generated tokens, prefill included: it is no TPOT, but it gives the number of
tokens. The shards' `decode` is the processing of logits, not the decode phase, and is not read.
Names: `router/src/server.rs`.
"""

from phasetrace.read.dialects.dialect import Dialect, Duration, In, Written

_HANDLERS = frozenset(
    (
        "generate",
        "generate_stream",
        "compat_generate",
        "completions",
        "chat_completions",
        "vertex_compatibility",
    )
)
INFERENCE, EACH = "inference_time", "time_per_token"


def _is_request(written: Written) -> bool:
    found = written.span.attributes
    return INFERENCE in found and (written.span.name in _HANDLERS or "validation_time" in found)


TGI = Dialect(
    writer="TGI",
    engine="tgi",
    is_request=_is_request,
    durations={
        Duration.E2E: (In("total_time"),),
        Duration.FRONTEND: (In("validation_time"),),
        Duration.QUEUE: (In("queue_time"),),
        Duration.INFERENCE: (In(INFERENCE),),
    },
    told=frozenset(),
    cannot="when the first token came, so prefill and decode are one; prompt tokens, the batch, single steps",
)
