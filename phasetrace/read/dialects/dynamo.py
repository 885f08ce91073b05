"""NVIDIA Dynamo: a span of its HTTP frontend around the engine's own; the worker is one opaque span.

Names: `docs/observability/tracing.md`.
"""

from phasetrace.read.dialects.dialect import Dialect, Written

REQUEST = "http-request"
WORKER = "handle_payload"


def _is_request(written: Written) -> bool:
    if written.span.name != REQUEST:
        return False
    said = written.said_by.lower()
    return "dynamo" in said or "x_request_id" in written.span.attributes


DYNAMO = Dialect(
    writer="Dynamo",
    engine="dynamo",
    is_request=_is_request,
    parts=frozenset((WORKER, "client_request")),
    gateway=True,
    told=frozenset(),
    cannot="tokens and phases: its worker is one opaque span, so switch on the engine's own tracing as well",
)
