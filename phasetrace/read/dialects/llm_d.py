"""llm-d: a gateway, a router and a proxy around vLLM, or around one for prefill and one for decode.

With the connector `nixlv2` the span `llm_d.pd_proxy.decode` is a child of `llm_d.pd_proxy.prefill`, and the
two vLLM requests of one user's request have a time to first token each. The one that the user sees is the
decoding server's, counted from when the proxy had the request; what is before it is the prefilling server's.
"""

from phasetrace.read.dialects.dialect import Dialect, Written

REQUEST, PREFILL, DECODE = "llm_d.pd_proxy.request", "llm_d.pd_proxy.prefill", "llm_d.pd_proxy.decode"
GATEWAYS = frozenset(("gateway.request", "gateway.request_orchestration"))


def _is_request(written: Written) -> bool:
    return written.span.name == REQUEST or written.span.name in GATEWAYS


LLM_D = Dialect(
    writer="llm-d",
    engine="vllm",
    is_request=_is_request,
    parts=frozenset((PREFILL, DECODE)),
    gateway=True,
    told=frozenset(),
    cannot="more than when a request came and went, where vLLM's own spans are not in the trace",
)
