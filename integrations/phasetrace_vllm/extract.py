"""What vLLM's own objects tell: requests, endings, the queue, who gave tokens. Pure, apart from the engine.

Objects are asked for the attributes of version 0.32; what is not there is left out, never guessed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from phasetrace_agent.layout import HEAD_REASON_CODE

# Numbers and switches of SamplingParams that bear on time; nothing a user wrote
NUMBERS = {
    "max_tokens": None,
    "min_tokens": 0,
    "temperature": None,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "ignore_eos": False,
    "logprobs": None,
    "prompt_logprobs": None,
    "detokenize": True,
    "stream_interval": None,
    "skip_reading_prefix_cache": False,
    "thinking_token_budget": None,
}  # with what they are where nobody set them: that is not said
# What is only said to be there
PRESENT = {
    "structured_outputs": "structured",
    "logit_bias": "logit_bias",
    "allowed_token_ids": "allowed_token_ids",
    "bad_words": "bad_words",
    "stop": "stop_strings",
}
_BLOCKED = {
    "WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR": "grammar",
    "WAITING_FOR_FSM": "grammar",
    "WAITING_FOR_REMOTE_KVS": "remote-kv",
    "WAITING_FOR_STREAMING_REQ": "other",
}
_REASONS = {"STOP": "stop", "LENGTH": "length", "ABORT": "abort", "ERROR": "error", "REPETITION": "stop"}
# A request of which the user got no more than a part
ABORTED = {"reason": "abort", "error": "aborted"}


def arrival(request: Any) -> dict[str, Any]:
    """What an `EngineCoreRequest` says of a request when it arrives in the core."""
    params = request.sampling_params
    temperature = getattr(params, "temperature", None)
    data: dict[str, Any] = {
        "engine": "vllm",
        "external": request.request_id,
        "mode": None if temperature is None else "greedy" if temperature < 1e-5 else "sample",
        "settings": settings(request),
        "sequences": [{"prompt": prompt_tokens(request), "padding": 0}],
        "parent": parent(getattr(request, "trace_headers", None)),
    }
    return {key: value for key, value in data.items() if value is not None}


def settings(request: Any) -> dict[str, Any]:
    """The settings that bear on time."""
    params = request.sampling_params
    found: dict[str, Any] = {}
    for name, unset in NUMBERS.items():
        value = getattr(params, name, None)
        if value != unset and type(value) in (
            bool,
            int,
            float,
        ):  # not a subclass: an int may carry more than a number
            found[name] = value
    for name, said in PRESENT.items():
        if getattr(params, name, None):
            found[said] = True
    if getattr(request, "lora_request", None) is not None:
        number = getattr(request.lora_request, "lora_int_id", None)
        found["lora"] = number if type(number) is int else True
    priority = getattr(request, "priority", 0)
    if type(priority) is int and priority:
        found["priority"] = priority
    return found


def prompt_tokens(request: Any) -> int | None:
    """Tokens of the prompt, however it was given."""
    for name in ("prompt_token_ids", "prompt_embeds"):
        given = getattr(request, name, None)
        if given is not None:
            return len(given)
    return None


def parent(headers: Mapping[str, str] | None) -> dict[str, Any] | None:
    """The span that a W3C `traceparent` among these headers names."""
    if not headers:
        return None
    value = headers.get("traceparent")
    return traceparent(value) if isinstance(value, str) else None


def traceparent(value: str) -> dict[str, Any] | None:
    """Trace and span of a `traceparent`; None where it is not one."""
    parts = value.strip().lower().split("-")
    if len(parts) < 4 or (len(parts[1]), len(parts[2])) != (32, 16) or parts[0] == "ff":
        return None
    try:
        if not int(parts[1], 16) or not int(parts[2], 16):
            return None
    except ValueError:
        return None
    return {"trace": parts[1], "span": parts[2], "begin_wall": None}


def new_span() -> dict[str, str]:
    """Random ids of a trace and a span; the application's random numbers stay as they are."""
    drawn = os.urandom(24).hex()
    return {"trace": drawn[:32], "span": drawn[32:]}


def as_traceparent(span: Mapping[str, str]) -> str:
    """A sampled W3C `traceparent` that names this span."""
    return "00-%s-%s-01" % (span["trace"], span["span"])


class Ending:
    """How the engine core's `Request` ended."""

    __slots__ = ("output", "prompt", "reason")

    def __init__(self, request: Any) -> None:
        self.reason = reason_name(request.get_finished_reason())
        self.prompt: int = request.num_prompt_tokens
        self.output: int = request.num_output_tokens

    def told(self) -> dict[str, Any]:
        """As the last word on a request that no step ever held."""
        row = {"prompt": self.prompt, "padding": 0, "output": self.output, "reason": self.reason}
        return {"sequences": [row], "reason": self.reason}


def reason_name(reason: Any) -> str:
    """A `FinishReason` in the words of the recording."""
    return _REASONS.get(getattr(reason, "name", ""), "other")


def cached(request: Any) -> tuple[int, int] | None:
    """Prompt tokens whose KV was there, in this engine and fetched, when a request is first scheduled."""
    stats = getattr(request, "prefill_stats", None)
    if stats is None:
        return None
    return stats.num_local_cached_tokens, stats.num_external_cached_tokens


def given(outputs: Mapping[int, Any]) -> dict[str, int]:
    """How many tokens each request got, in what `update_from_output` returned."""
    return {output.request_id: len(output.new_token_ids) for of in outputs.values() for output in of.outputs}


def sampled(ran: Any) -> dict[str, int]:
    """How many tokens each request sampled in a step, by what the model runner returned."""
    rows = ran.sampled_token_ids
    return {name: len(rows[row]) for name, row in ran.req_id_to_index.items()} if rows else {}


def speculated(output: Any, sampled: Mapping[str, int]) -> tuple[int, int]:
    """Tokens proposed for the step `output`, and those of them that turned out right; as vLLM counts them."""
    proposed = accepted = 0
    invalid = output.num_invalid_spec_tokens or {}
    for name, drafts in output.scheduled_spec_decode_tokens.items():
        if tokens := sampled.get(name, 0):
            proposed += len(drafts) - invalid.get(name, 0)
            accepted += tokens - 1
    return proposed, accepted


def head_of_queue(scheduler: Any) -> Any:
    """The waiting request that is next, or None."""
    holding = getattr(scheduler, "kv_holding_waiting", None)
    for queue in (holding, getattr(scheduler, "skipped_waiting", None), scheduler.waiting):
        if queue:
            return queue.peek_request()
    return None


def head_reason(scheduler: Any, counts: Mapping[str, int], total: int, preempted: bool) -> int:
    """Why the head of the queue did not get into the step just scheduled, as a code of the layout."""
    return HEAD_REASON_CODE[_head_reason(scheduler, counts, total, preempted)]


def _head_reason(scheduler: Any, counts: Mapping[str, int], total: int, preempted: bool) -> str:
    head = head_of_queue(scheduler)
    if head is None:
        return "none"
    if getattr(getattr(scheduler, "pause_state", None), "name", "UNPAUSED") != "UNPAUSED":
        return "paused"
    if preempted:
        return "kv"
    if len(scheduler.running) >= getattr(scheduler, "max_num_active_reqs", scheduler.max_num_running_reqs):
        return "slots"
    if total >= scheduler.max_num_scheduled_tokens:
        return "budget"
    blocked = _BLOCKED.get(str(getattr(head.status, "name", "")))
    if blocked is not None:
        return blocked
    if _whole_prompt_does_not_fit(scheduler, head, total):
        return "budget"
    if _lora_is_full(scheduler, counts, head):
        return "lora"
    return "kv"


def _whole_prompt_does_not_fit(scheduler: Any, head: Any, total: int) -> bool:
    """Without chunked prefill a prompt waits until the budget of a step takes it whole."""
    if getattr(scheduler.scheduler_config, "enable_chunked_prefill", True):
        return False
    return bool(head.num_tokens - head.num_computed_tokens > scheduler.max_num_scheduled_tokens - total)


def _lora_is_full(scheduler: Any, counts: Mapping[str, int], head: Any) -> bool:
    config = getattr(scheduler, "lora_config", None)
    if config is None or head.lora_request is None:
        return False
    requests = (scheduler.requests.get(name) for name in counts)
    loras = {r.lora_request.lora_int_id for r in requests if r is not None and r.lora_request is not None}
    return len(loras) >= config.max_loras and head.lora_request.lora_int_id not in loras


def returned(state: Any, reason: str) -> dict[str, Any]:
    """What the user got of a sequence, by the frontend's state of it."""
    row: dict[str, Any] = {"prompt": state.prompt_len, "padding": 0, "reason": reason}
    if state.detokenizer is not None:
        row["output"] = state.detokenizer.num_output_tokens()
    return row
