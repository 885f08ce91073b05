"""The whole analysis: refuse what contradicts itself, attribute, set warm-up aside, then take statistics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from phasetrace.analyze import checks, metrics, prefix, shared_steps, stalls, tokens, warm_up
from phasetrace.analyze.attribution import PauseClock, phases, whole
from phasetrace.analyze.owners import owners
from phasetrace.analyze.pace import pace
from phasetrace.analyze.pauses import merged_pauses
from phasetrace.analyze.stall_patterns import stall_patterns
from phasetrace.analyze.step_table import StepTable, step_table
from phasetrace.analyze.token_gaps import token_gaps
from phasetrace.model import (
    Breakdown,
    Part,
    PartTime,
    Phase,
    PhaseTime,
    Recording,
    Request,
    RequestBreakdown,
    RequestStatus,
)


def breakdown(recording: Recording, table: StepTable | None = None) -> Breakdown:
    """Where the time of a recording's requests went; `table` saves making the table of its steps again."""
    table = table or step_table(recording)
    refused, contradictions = checks.refused(recording, table)
    sound = [request for n, request in enumerate(recording.requests) if n not in refused]
    sound.sort(key=lambda request: (request.arrival_ns, request.id))
    finished = [request for request in sound if request.status is RequestStatus.OK]
    repeated = prefix.repeated_prompt_tokens(finished)
    clocks = {
        process: PauseClock(*merged_pauses(recording.pauses, process))
        for process in {request.process for request in finished}
    }
    requests = [_request(r, table, clocks[r.process], repeated.get(r.id)) for r in finished]
    together = shared_steps.shared_steps(sound, table)
    requests = [together.told(request) for request in requests]
    one_off = warm_up.excess_by_request(requests, table)
    warm, diagnosed = warm_up.tell_apart(requests, one_off)
    asked = [request.request for request in diagnosed]
    gaps = token_gaps(asked, table)
    over_time, longest = pace(diagnosed, gaps, table), gaps.longest_ns
    measured = metrics.percentiles(diagnosed, gaps)
    del gaps  # as long as the table
    late = stalls.late_tokens(asked, table, together.made, together.read_ns)
    return Breakdown(
        recording=recording,
        requests=tuple(diagnosed),
        warm_up=tuple(warm),
        failed=tuple(request for request in sound if request.status is not RequestStatus.OK),
        phases=_summed(diagnosed),
        metrics=measured,
        longest_gap_ns=longest,
        throughput_tok_s=metrics.throughput_tok_s(diagnosed),
        defects=contradictions + checks.beside(recording, table),
        unsplit=_unsplit(diagnosed),
        stalls=stalls.told(late, asked, table, together.made),
        stall_patterns=stall_patterns(late, table),
        interference=together.interference,
        owners=owners(diagnosed, recording.models),
        pace=over_time,
        one_off_ns=one_off,
        step_costs=together.models,
    )


def _request(request: Request, table: StepTable, clock: PauseClock, repeated: int | None) -> RequestBreakdown:
    assert request.finished_ns is not None
    e2e = request.finished_ns - request.begin_ns
    return RequestBreakdown(
        request=request,
        phases=phases(request, table, clock),
        e2e_ns=e2e,
        ttft_ns=metrics.ttft_ns(request),
        tpot_ns=metrics.tpot_ns(request),
        new_prompt_tokens=tokens.new_prompt_tokens(request),
        repeated_prompt_tokens=repeated,
        padded_decode_tokens=tokens.padded_decode_tokens(request),
    )


def _summed(requests: Iterable[RequestBreakdown]) -> tuple[PhaseTime, ...]:
    """Sums over requests. Where only some could split a phase, the time of the whole ones is in `other`."""
    total: dict[Phase, int] = defaultdict(int)
    parts: dict[Phase, dict[Part, int]] = defaultdict(lambda: defaultdict(int))
    whole_ns: dict[Phase, int] = defaultdict(int)
    for request in requests:
        for time in request.phases:
            total[time.phase] += time.ns
            for part in time.parts:
                parts[time.phase][part.part] += part.ns
            if not time.parts:
                whole_ns[time.phase] += time.ns
    for phase, split in parts.items():
        if whole_ns[phase]:
            split[Part.OTHER] += whole_ns[phase]
    return tuple(
        PhaseTime(
            phase, total[phase], tuple(PartTime(p, parts[phase][p]) for p in Part if parts[phase].get(p))
        )
        for phase in Phase
        if phase in total
    )


def _unsplit(requests: Iterable[RequestBreakdown]) -> tuple[str, ...]:
    found: dict[str, int] = defaultdict(int)
    for request in requests:
        for sentence in whole(request.request, request.phases):
            found[sentence] += 1
    return tuple(f"{sentence} ({count:,} requests)" for sentence, count in found.items())
