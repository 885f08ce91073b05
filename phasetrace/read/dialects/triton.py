"""Triton: moments as events of three spans, or in its own trace file; whatever its backend is.

`InferRequest` holds when the request came over HTTP or gRPC and when the answer went, a span named by the
model the queue, and `compute` the backend's work; an ensemble has several of these. gRPC's span begins when a
thread began to wait for a request, so its begin is not the request's. A model that streams completes several
responses, and the first of them is its first output; from one that does not, a first token is not known.
Names: `docs/user_guide/trace.md`.
"""

from phasetrace.read.dialects.dialect import At, Dialect, Written

REQUEST, COMPUTE = "InferRequest", "compute"
CAME = ("HTTP_RECV_START", "GRPC_WAITREAD_END")
RESPONSE = "INFER_RESPONSE_COMPLETE"


def _is_request(written: Written) -> bool:
    return written.span.name == REQUEST and bool(written.span.events)


TRITON = Dialect(
    writer="Triton",
    engine="triton",
    is_request=_is_request,
    parts=frozenset((REQUEST, COMPUTE)),
    gateway=True,
    came=CAME,
    moments={
        "received_ns": At("QUEUE_START"),
        "scheduled_ns": At("COMPUTE_START"),
        "first_token_ns": At(RESPONSE, among=2),
        "last_token_ns": At("COMPUTE_END", last=True),
    },
    told=frozenset(),
    cannot="tokens, and prefill and decode apart: to it the backend's work is one",
)
