"""Numbers that contradict each other or physics: nothing is diagnosed from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from phasetrace.advise.table.against_device import against_device
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.stated import SERVERS
from phasetrace.advise.words import seconds

BEYOND = 1.3  # times: a part longer than its whole; both are rounded, and means of a group that varies
SEEN_LATE = 0.75  # of the request has passed: the answer came in one piece, streamed or not
UNEXPLAINED = (
    1.45  # times: what phases and tokens add up to, against the stated whole; two errors of 10 % make 1.22
)
MISSING = 3.0  # times: the whole over its stated phases, where time outside them would still be possible
TWICE = 2.0  # times: rates and times of one run, taken apart, differ by ramps at both ends
FRACTIONS = (
    "kv_cache_usage",
    "prefix_cache_hit_rate",
    "gpu_utilization",
    "cpu_utilization",
    "recomputed_token_share",
)
ORDERED = (
    ("ttft_p95_s", "ttft_p99_s"),
    ("e2e_p95_s", "e2e_p99_s"),
    ("itl_p50_s", "itl_p95_s"),
    ("itl_p95_s", "itl_p99_s"),
    ("itl_p99_s", "itl_max_s"),
    ("itl_p50_s", "itl_max_s"),
)
MIDDLES = (
    ("ttft_s", "ttft_p95_s"),
    ("ttft_s", "ttft_p99_s"),
    ("e2e_s", "e2e_p95_s"),
    ("e2e_s", "e2e_p99_s"),
    ("queue_s", "queue_p95_s"),
)
INSIDE = (
    ("queue_s", "ttft_s"),
    ("prefill_s", "ttft_s"),
    ("frontend_s", "ttft_s"),
    ("ttft_s", "e2e_s"),
    ("queue_s", "e2e_s"),
    ("prefill_s", "e2e_s"),
    ("decode_s", "e2e_s"),
    ("cached_tokens", "prompt_tokens"),
    ("shared_prefix_tokens", "prompt_tokens"),
    ("prompt_tokens", "padded_prompt_tokens"),
    ("succeeded", "requests"),
    ("output_tokens", "max_tokens"),
    ("e2e_s", "client_e2e_s"),
)


def contradictions(s: Setting) -> list[str]:
    """What cannot be, each in one sentence."""
    return [f"{s.name}: {said}" for check in CHECKS for said in check(s)]


def impossible_values(s: Setting) -> Iterator[str]:
    """Below zero, or a fraction above one."""
    for f in fields(s.group):
        value = getattr(s.group, f.name)
        if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
            yield (f"{f.name} is negative ({value:g}): impossible")
        elif f.name in FRACTIONS and value is not None and value > 1.15:
            yield (f"{f.name} is {value:g}, and a fraction cannot be above 1")


def zeros(s: Setting) -> Iterator[str]:
    """Times of nothing, where something was done."""
    for name in ("ttft_s", "tpot_s", "e2e_s", "decode_s", "prefill_s"):
        if getattr(s.group, name) == 0 and not (name == "decode_s" and (s.group.output_tokens or 2) < 2):
            yield f"{name} is 0: impossible where tokens were read or written"


def failures(s: Setting) -> Iterator[str]:
    """Rates of requests that failed say nothing about those that work."""
    g = s.group
    if g.requests and g.succeeded is not None and g.succeeded < 0.5 * g.requests:
        yield (
            f"{g.requests - g.succeeded:,.0f} of {g.requests:,.0f} requests failed: the rates are"
            " those of errors"
        )
    elif g.throughput_tok_s == 0 and (g.request_throughput or 0) > 0:
        yield ("requests end and no token comes out: they fail")


def order(s: Setting) -> Iterator[str]:
    """Percentiles that fall, and parts that exceed their whole."""
    for low, high in (*ORDERED, *INSIDE):
        a, b = getattr(s.group, low), getattr(s.group, high)
        if a is not None and b is not None and a > 0 and b > 0 and a > BEYOND * b:
            yield (f"{low} ({a:g}) is inconsistent with {high} ({b:g}): it cannot be larger")
    for middle, tail in MIDDLES:
        a, b = getattr(s.group, middle), getattr(s.group, tail)
        if a and b and a > 2 * b:
            yield (f"{middle} ({a:g}) lies above {tail} ({b:g})")


def sums(s: Setting) -> Iterator[str]:
    """Phases that do not add up to the whole that is stated."""
    g = s.group
    parts = [
        v for v in (g.frontend_s, g.queue_s, g.prefill_s, s.decode if g.decode_s or g.tpot_s else None) if v
    ]
    whole = g.e2e_s
    if whole and sum(parts) > BEYOND * whole and len(parts) > 1:
        yield (
            f"the phases add up to {seconds(sum(parts) * 1e9)}, the request took"
            f" {seconds(whole * 1e9)}: they contradict each other"
        )
    if (
        whole
        and s.table.engine not in SERVERS  # there, a queue that the table lacks may hold the rest
        and g.prefill_s
        and s.decode
        and g.ttft_s is None
        and whole > MISSING * sum(parts)
        and g.queue_s is None
    ):
        yield (f"the phases add up to {seconds(sum(parts) * 1e9)} of {seconds(whole * 1e9)}: inconsistent")
    if (
        whole
        and g.ttft_s
        and g.decode_s
        and not _seen_late(s, sum(parts), whole)
        and not 1 / UNEXPLAINED <= (g.ttft_s + g.decode_s) / whole <= UNEXPLAINED
    ):
        yield (
            f"the first token after {seconds(g.ttft_s * 1e9)} and decode of"
            f" {seconds(g.decode_s * 1e9)} make no e2e of"
            f" {seconds(whole * 1e9)}: they contradict each other"
        )
    if g.tpot_s and g.output_tokens and g.output_tokens > 4:
        first = g.ttft_s if g.ttft_s is not None else (g.queue_s or 0) + (g.prefill_s or 0)
        made = first + g.tpot_s * (g.output_tokens - 1)
        if whole and g.ttft_s is not None and not 1 / UNEXPLAINED <= made / whole <= UNEXPLAINED:
            rest = max(0.0, whole - g.ttft_s)
            yield (
                f"{g.output_tokens:,.0f} tokens at {seconds(g.tpot_s * 1e9)} after a first one at"
                f" {seconds(g.ttft_s * 1e9)} make"
                f" {seconds(made * 1e9)}, and e2e is {seconds(whole * 1e9)}: recomputed, a token"
                f" takes {seconds(rest / (g.output_tokens - 1) * 1e9)}"
            )
        if g.decode_s and not 0.6 <= g.tpot_s * (g.output_tokens - 1) / g.decode_s <= 1 / 0.6:
            yield (
                "tpot_s x (output_tokens - 1) is"
                f" {seconds(g.tpot_s * (g.output_tokens - 1) * 1e9)}, decode_s"
                f" {seconds(g.decode_s * 1e9)}: they contradict each other"
            )


def _seen_late(s: Setting, phases: float, whole: float) -> bool:
    """The engine's phases make the whole: then TTFT is the user's, who saw the first token late."""
    late = s.group.ttft_s is not None and s.group.ttft_s >= SEEN_LATE * whole
    return late and 1 / UNEXPLAINED <= phases / whole <= UNEXPLAINED


def limits(s: Setting) -> Iterator[str]:
    """More than the engine's own settings allow."""
    g = s.group
    length, most = s.knob("max_model_len", "max_seq_len", "n_ctx", "ctx_size"), s.cap
    if length and g.prompt_tokens and g.prompt_tokens > BEYOND * length:
        yield f"prompts of {g.prompt_tokens:,.0f} tokens contradict a maximum length of {length:,.0f}"
    if most and g.running and g.running > BEYOND * most * max(1.0, g.sequences_per_request or 1.0):
        yield f"{g.running:,.0f} sequences run where {most:,.0f} may: they contradict each other"
    if g.accepted_length and g.speculative_tokens and g.accepted_length > BEYOND * (g.speculative_tokens + 1):
        yield (
            f"{g.accepted_length:g} tokens a step cannot come of {g.speculative_tokens:g} drafted"
            " ones: impossible"
        )


def rates(s: Setting) -> Iterator[str]:
    """More tokens than steps can give, or requests than are open (Little's law)."""
    g = s.group
    copies = max(1.0, g.sequences_per_request or 1.0)
    if g.throughput_tok_s and g.request_throughput and g.output_tokens:
        made = g.request_throughput * g.output_tokens
        if not 1 / 1.9 <= g.throughput_tok_s / made <= 1.9 * copies and not g.prompt_tokens:
            yield (
                f"{g.request_throughput:g} requests a second of {g.output_tokens:g} tokens make"
                f" {made:,.0f} tokens a second, not {g.throughput_tok_s:,.0f}: inconsistent"
            )
    open_requests = g.concurrency
    if open_requests and g.request_throughput and g.e2e_s:
        under_way = g.request_throughput * g.e2e_s
        if under_way > 1.6 * open_requests:
            yield (
                f"{g.request_throughput:g} requests a second of {seconds(g.e2e_s * 1e9)} each are"
                f" {under_way:,.0f} at a time, and {open_requests:,.0f} were open: they contradict"
                " each other"
            )
    if open_requests and g.throughput_tok_s and g.e2e_s and g.output_tokens:
        most = open_requests / g.e2e_s * (g.output_tokens * copies + (g.prompt_tokens or 0))
        if g.throughput_tok_s > TWICE * most and g.prompt_tokens is not None:
            yield (
                f"{open_requests:,.0f} requests of {seconds(g.e2e_s * 1e9)} make at most {most:,.0f} tokens"
                f" a second, prompts counted, not {g.throughput_tok_s:,.0f}: inconsistent"
            )
    many = max((v for v in (g.concurrency, g.batch, g.running) if v), default=None)
    if many and g.throughput_tok_s and g.tpot_s and g.throughput_tok_s > 2.2 * many * copies / g.tpot_s:
        yield (
            f"{many:,.0f} sequences at {seconds(g.tpot_s * 1e9)} a token give at most"
            f" {many / g.tpot_s:,.0f} tokens a second, not {g.throughput_tok_s:,.0f}: inconsistent"
        )


CHECKS = (impossible_values, zeros, failures, order, sums, limits, rates, against_device)
