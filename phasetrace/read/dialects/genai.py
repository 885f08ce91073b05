"""The GenAI conventions, old and new, whoever follows them: the last to be asked."""

from phasetrace.read.dialects.dialect import COUNTS, DURATIONS, Count, Dialect, Duration, In, Written

_OPERATIONS = frozenset(("chat", "text_completion", "generate_content"))
MODEL = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "llm.request.model")


def _is_request(written: Written) -> bool:
    """One request to a model, and not an agent, a tool or a part of one."""
    found = written.span.attributes
    if any(key.startswith("gen_ai.latency.") for key in found):
        return True
    operation = found.get("gen_ai.operation.name")
    if operation is not None:
        return str(operation) in _OPERATIONS
    return any(key in found for key in MODEL) and any(key in found for key in COUNTS[Count.OUTPUT])


GENAI = Dialect(
    writer="the GenAI conventions",
    engine="unknown",
    is_request=_is_request,
    durations={
        **DURATIONS,
        Duration.TTFT: (
            *DURATIONS[Duration.TTFT],
            In("gen_ai.response.time_to_first_chunk"),
            In("gen_ai.server.time_to_first_token"),
        ),
        Duration.TPOT: (In("gen_ai.server.time_per_output_token"),),
    },
    cannot="queue and prefill: the conventions have no name for them",
)
