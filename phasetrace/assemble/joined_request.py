"""A request as its frontend saw it and as the engine core did, made one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from phasetrace.model import Request, RequestStatus, StepCount
from phasetrace_agent import layout

# Why the user did not get what the core gave out, by how the request ended
_UNUSED = {"stop": layout.STOP_STRING, "abort": layout.ABORTED}


def join(frontend: Request, cores: Sequence[Request]) -> Request:
    """The frontend says when it began and ended and what the user got, the core what lay between.

    Several in the core are sequences of one request: it is scheduled with the first of them, and each gives
    its own tokens. Those that ran in other processes than the first lend no steps.
    """
    core = _together([request for request in cores if request.process == cores[0].process])
    if frontend.mode == "beam":
        reading = _readers(core, cores)
        core = replace(core, mode="beam", prefill_chunks=_chunks(reading))
    else:
        reading = cores
    finished = frontend.finished_ns
    if finished is not None and core.last_token_ns is not None:
        finished = max(finished, core.last_token_ns)
    arrival = min(frontend.arrival_ns, core.arrival_ns)
    sequences = frontend.sequences or tuple(row for request in cores for row in request.sequences)
    derived = core.derived if frontend.sequences else core.derived | frontend.derived & {"sequences"}
    first_output = frontend.first_output_ns
    if first_output is not None and core.first_token_ns is not None and first_output < core.first_token_ns:
        first_output = core.first_token_ns  # those were bytes of another prompt of the same exchange
        derived |= {"first_output_ns"}
    parent = frontend.parent_span_id or core.parent_span_id
    if parent == frontend.span_id:  # as vLLM's tracing tells the core
        parent = None
    return replace(
        core,
        external_id=frontend.external_id or core.external_id,
        trace_id=core.trace_id if parent and not frontend.parent_span_id else frontend.trace_id,
        span_id=frontend.span_id,
        parent_span_id=parent,
        operation=frontend.operation,
        arrival_ns=arrival,
        finished_ns=finished,
        first_output_ns=first_output,
        status=_status(frontend, core),
        error_type=frontend.error_type or core.error_type,
        finish_reason=frontend.finish_reason or core.finish_reason,
        sequences=sequences,
        cached_tokens=_sum(request.cached_tokens for request in reading),
        external_cached_tokens=_sum(request.external_cached_tokens for request in reading),
        discarded_tokens=_discarded(frontend, cores),
        tokenize_ns=_within(frontend.tokenize_ns, arrival, core.received_ns),
        detokenize_ns=_within(frontend.detokenize_ns, core.last_token_ns, finished),
        settings={**core.settings, **frontend.settings},
        derived=derived,
    )


def _readers(core: Request, cores: Sequence[Request]) -> Sequence[Request]:
    """Those of a beam search that read the prompt; the later ones go on from what they wrote."""
    first = core.first_token_ns
    return [request for request in cores if first is None or request.arrival_ns < first]


def _chunks(cores: Iterable[Request]) -> tuple[StepCount, ...]:
    return _summed(chunk for request in cores for chunk in request.prefill_chunks)


def _status(frontend: Request, core: Request) -> RequestStatus:
    """The user's view counts: what the frontend could still answer was answered."""
    if RequestStatus.FAILED in (frontend.status, core.status):
        return RequestStatus.FAILED
    return frontend.status


def _discarded(frontend: Request, cores: Sequence[Request]) -> dict[str, int]:
    """What the core discarded of what was sampled, and what the frontend did of what the core gave it.

    Beams have tokens in common, so that those given up cannot be told by counting.
    """
    total: Counter[str] = Counter()
    for request in cores:
        total.update(request.discarded_tokens)
    if frontend.finish_reason == "stop" and layout.ABORTED in total:  # which is how the core was told
        total[layout.STOP_STRING] = total.pop(layout.ABORTED)
    returned = None if frontend.mode == "beam" else frontend.output_tokens
    unused = 0 if returned is None else sum(map(_given, cores)) - returned
    if unused > 0:
        total[_UNUSED.get(frontend.finish_reason or "", layout.UNDELIVERED)] += unused
    return dict(total)


def _given(core: Request) -> int:
    """Tokens that its steps gave out."""
    if core.first_step is None or core.last_step is None:
        return 0
    steps = core.last_step - core.first_step + 1
    return steps + sum(count.tokens - 1 for count in core.yields)


def _together(cores: Sequence[Request]) -> Request:
    first = min(cores, key=lambda request: request.arrival_ns)
    if len(cores) == 1:
        return first
    begin = _least(request.first_step for request in cores)
    end = _most(request.last_step for request in cores)
    return replace(
        first,
        received_ns=_least(request.received_ns for request in cores),
        queued_ns=_least(request.queued_ns for request in cores),
        scheduled_ns=_least(request.scheduled_ns for request in cores),
        first_token_ns=_least(request.first_token_ns for request in cores),
        last_token_ns=_most(request.last_token_ns for request in cores),
        first_step=begin,
        last_step=end,
        prefill_chunks=_chunks(cores),
        yields=_yields(cores, begin, end),
        recomputed=_summed(chunk for request in cores for chunk in request.recomputed),
        grammar_ns=_most(request.grammar_ns for request in cores),
        preemptions=(),  # one sequence's: the others went on
        derived=frozenset[str]().union(*(request.derived for request in cores)),
    )


def _summed(chunks: Iterable[StepCount]) -> tuple[StepCount, ...]:
    tokens: Counter[int] = Counter()
    for chunk in chunks:
        tokens[chunk.step] += chunk.tokens
    return tuple(StepCount(step, count) for step, count in sorted(tokens.items()))


def _yields(cores: Sequence[Request], begin: int | None, end: int | None) -> tuple[StepCount, ...]:
    """Steps that gave the foremost of the sequences other than one token."""
    if begin is None or end is None:
        return ()
    given = dict.fromkeys(range(begin, end + 1), 0)
    for request in cores:
        if request.first_step is None or request.last_step is None:
            continue
        other = {count.step: count.tokens for count in request.yields}
        for step in range(request.first_step, request.last_step + 1):
            given[step] = max(given[step], other.get(step, 1))
    return tuple(StepCount(step, tokens) for step, tokens in given.items() if tokens != 1)


def _within(ns: int | None, begin: int | None, end: int | None) -> int | None:
    if ns is None or begin is None or end is None:
        return None
    return max(0, min(ns, end - begin))


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
