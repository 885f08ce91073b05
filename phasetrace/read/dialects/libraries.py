"""Instrumentations of libraries: they see a call from outside, and what some of them add is not measured."""

from collections.abc import Mapping

from phasetrace.read.dialects.dialect import COUNTS, DURATIONS, At, Count, Dialect, Duration, In, Written

_OPERATIONS = ("chat", "text_completion", "generate_content")
_PIPELINE = "transformers_text_generation_pipeline.call"
_LOCAL = (
    "huggingface",
    "hugging_face",
    "transformers",
    "vllm",
)  # OpenLIT's instrumentations without a server
_OPENLIT_DURATIONS = {
    Duration.TTFT: (In("gen_ai.server.time_to_first_token"), In("gen_ai.server.ttft")),
    Duration.TPOT: (In("gen_ai.server.time_per_output_token"), In("gen_ai.server.tbt")),
}


def _is_openllmetry(written: Written) -> bool:
    found = written.span.attributes
    if written.span.name == _PIPELINE or found.get("llm.request.type") in ("chat", "completion"):
        return True
    return "gen_ai.is_streaming" in found and found.get("gen_ai.operation.name") in _OPERATIONS


def _is_openlit(written: Written) -> bool:
    if written.resource.get("telemetry.sdk.name") != "openlit" and not written.scope.startswith("openlit"):
        return False
    return written.span.attributes.get("gen_ai.operation.name") in _OPERATIONS


def _openlit_doubts(written: Written) -> Mapping[Duration | Count, str]:
    found = written.span.attributes
    served_by = str(found.get("gen_ai.provider.name", found.get("gen_ai.system", ""))).lower()
    if not any(name in served_by for name in _LOCAL):
        return {}
    characters = "OpenLIT counts a token for every two characters of text"
    whole = "OpenLIT writes the duration of the whole call"
    return {
        Count.PROMPT: characters,
        Count.OUTPUT: characters,
        Count.CACHED: "OpenLIT writes 0 without having looked",
        Duration.TTFT: whole,
        Duration.TPOT: whole,
    }


OPENLLMETRY = Dialect(
    writer="OpenLLMetry",
    engine="unknown",
    is_request=_is_openllmetry,
    counts={**COUNTS, Count.OUTPUT: (*COUNTS[Count.OUTPUT], "llm.usage.completion_tokens")},
    moments={"first_token_ns": At("gen_ai.content.completion.chunk")},
    cannot="any phase; of a transformers pipeline no tokens either",
)
OPENINFERENCE = Dialect(
    writer="OpenInference",
    engine="unknown",
    is_request=lambda written: written.span.attributes.get("openinference.span.kind") == "LLM",
    moments={"first_token_ns": At("First Token Stream Event")},
    cannot="queue and prefill: it sees a call from outside",
)
OPENLIT = Dialect(
    writer="OpenLIT",
    engine="unknown",
    is_request=_is_openlit,
    durations={**DURATIONS, **_OPENLIT_DURATIONS},
    doubts=_openlit_doubts,
    cannot="queue and prefill: it sees a call from outside",
)
