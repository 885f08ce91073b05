"""A request's spans: the right names and times, inside the budget of their trace."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from phasetrace.mapping import Detail, ResourceSpans, Span, SpanMaker, TokenSpans, service_name, to_spans
from phasetrace.model import Interval, Recording, RequestStatus, Stall, StallCause, StepCount
from phasetrace.semconv import Attribute as A
from tests.builders import EPOCH, MS, generation, process, recording, request, steps

TRACE, PARENT = "ab" * 16, "cd" * 8


def shown(recorded: Recording, detail: Detail = Detail.AUTO) -> list[ResourceSpans]:
    return [group for group in to_spans(recorded, detail) if not group.file_only]


def spans(recorded: Recording, detail: Detail = Detail.AUTO) -> list[Span]:
    return [span for group in shown(recorded, detail) for span in group.spans]


def tokens(recorded: Recording, detail: Detail = Detail.AUTO) -> TokenSpans:
    (found,) = [t for group in shown(recorded, detail) for t in group.tokens]
    return found


def named(recorded: Recording, name: str) -> Span:
    (found,) = [span for span in spans(recorded) if span.name == name]
    return found


def per_trace(groups: list[ResourceSpans]) -> Counter[str]:
    count: Counter[str] = Counter()
    for group in groups:
        count.update(span.trace_id for span in group.spans)
        for run in group.tokens:
            count[run.trace_id] += len(run)
    return count


def test_phases_lie_end_to_end_under_the_request() -> None:
    taken = steps(5)
    asked = request(steps=taken, frontend_ms=2, queue_ms=3, delivery_ms=4)
    root, *phases = spans(recording(asked, steps=[taken]))
    assert root.name == "text_completion tiny"
    assert [p.name for p in phases] == ["frontend", "queue", "prefill", "decode", "delivery"]
    assert all(p.parent_span_id == root.span_id for p in phases)
    borders = [root.start_ns, *(p.end_ns for p in phases)]
    assert [(p.start_ns, p.end_ns) for p in phases] == list(zip(borders[:-1], borders[1:], strict=True))
    assert borders[-1] == root.end_ns


def test_a_phase_that_took_no_time_has_no_span() -> None:
    assert [s.name for s in spans(generation())] == ["text_completion tiny", "prefill", "decode"]


def test_conventional_attributes() -> None:
    taken = steps(5, rows=2)
    asked = request(steps=taken, rows=2, queue_ms=3, cached_tokens=4, settings={"max_new_tokens": 9})
    attributes = spans(recording(asked, steps=[taken]))[0].attributes
    assert attributes[A.REQUEST_MODEL] == "tiny"
    assert (attributes[A.INPUT_TOKENS], attributes[A.OUTPUT_TOKENS]) == (32, 10)
    assert attributes[A.FINISH_REASONS] == ["length", "length"]
    assert attributes[A.REQUEST_MAX_TOKENS] == 9
    assert attributes[A.LATENCY_QUEUE] == 0.003
    assert attributes[A.LATENCY_TTFT] == 0.013
    assert attributes[A.LATENCY_DECODE] == 0.04
    assert attributes[A.LATENCY_E2E] == 0.053


def test_one_token_span_a_step_after_the_first() -> None:
    taken = steps(5)
    found = tokens(recording(request(steps=taken), steps=[taken]))
    assert found.begin_ns.tolist() == taken.end_ns[:-1].tolist()
    assert found.end_ns.tolist() == taken.end_ns[1:].tolist()
    assert found.index.tolist() == [1, 2, 3, 4]


def test_tokens_that_came_together_share_a_span() -> None:
    taken = steps(4)
    asked = request(steps=taken, output=7, yields=(StepCount(1, 4),))
    recorded = recording(asked, steps=[taken])
    found = tokens(recorded)
    assert (found.index.tolist(), found.count.tolist()) == ([1, 5, 6], [4, 1, 1])
    assert named(recorded, "decode").attributes[A.ITL] == [2500, 2500, 2500, 2500, 10000, 10000]


def test_a_chunked_prefill_shows_its_chunks() -> None:
    taken = steps(4)
    chunks = (StepCount(0, 8), StepCount(1, 8), StepCount(2, 4))
    nothing = (StepCount(0, 0), StepCount(1, 0))
    asked = request(
        steps=taken, output=2, prefill_chunks=chunks, yields=nothing, first_token_ns=int(taken.end_ns[2])
    )
    found = [s for s in spans(recording(asked, steps=[taken])) if s.name == "prefill chunk"]
    assert [s.start_ns for s in found] == taken.begin_ns[:3].tolist()
    assert [s.attributes[A.CHUNK_TOKENS] for s in found] == [8, 8, 4]


def test_preemption_shows() -> None:
    taken = steps(4)
    asked = request(steps=taken, preemptions=(Interval(EPOCH + 11 * MS, EPOCH + 12 * MS),))
    assert named(recording(asked, steps=[taken]), "preempted").end_ns == EPOCH + 12 * MS


def test_a_failed_request_is_an_error() -> None:
    failed = request(status=RequestStatus.FAILED, error_type="OutOfMemoryError")
    assert spans(recording(failed))[0].error == "OutOfMemoryError"


def test_a_request_that_was_cut_off_ends_with_its_last_mark() -> None:
    taken = steps(4)
    cut = request(steps=taken, status=RequestStatus.CUT_OFF, finished_ns=None)
    assert spans(recording(cut, steps=[taken]))[0].end_ns == int(taken.end_ns[-1])


def test_2000_tokens_stay_within_the_budget_and_lose_no_token_time() -> None:
    lengths = np.full(2000, 10.0)
    lengths[[500, 1200, 1999]] = 100.0
    taken = steps(ms=list(lengths))
    recorded = recording(request(steps=taken), steps=[taken])
    for detail in Detail:
        groups = shown(recorded, detail)
        assert max(per_trace(groups).values()) <= 1000
        pieces = [s for g in groups for s in g.spans if s.name == "decode chunk"]
        waits = [w for piece in pieces for w in piece.attributes[A.ITL]]  # type: ignore[union-attr]
        assert waits == [int(ms * 1000) for ms in lengths[1:]]
        assert all(len(piece.attributes[A.ITL]) <= 1024 for piece in pieces)  # type: ignore[arg-type]
    found = tokens(recorded)
    assert len(found) <= 512
    assert int(found.count.sum()) == 1999
    own = found.end_ns - found.begin_ns == 100 * MS
    assert found.index[own].tolist() == [500, 1200, 1999]
    assert found.count[own].tolist() == [1, 1, 1]
    assert found.begin_ns[1:].tolist() == found.end_ns[:-1].tolist()


def calls_in_one_span(calls: int, tokens_each: int) -> list[ResourceSpans]:
    maker = SpanMaker()
    groups: list[ResourceSpans] = []
    begin = EPOCH
    for number in range(calls):
        taken = steps(tokens_each, begin=begin, stream=number)
        begin = int(taken.end_ns[-1])
        asked = request(f"r{number}", steps=taken, trace_id=TRACE, parent_span_id=PARENT)
        groups += [g for g in maker.spans(recording(asked, steps=[taken])) if not g.file_only]
    return groups


def test_64_calls_in_one_application_span_stay_within_the_budget_and_lose_no_token_time() -> None:
    groups = calls_in_one_span(64, tokens_each=64)
    assert set(per_trace(groups)) == {TRACE}
    assert per_trace(groups)[TRACE] <= 1000
    assert sum(len(t) for group in groups for t in group.tokens) >= 8 * 63  # the first ones in full
    with_waits = [s for g in groups for s in g.spans if A.ITL in s.attributes]
    assert [s.attributes[A.ITL] for s in with_waits] == [[10_000] * 63] * 64
    left_out = [
        s.attributes.get(A.SPANS_LEFT_OUT, 0) for g in groups for s in g.spans if A.ID in s.attributes
    ]
    assert left_out[0] == 0 and left_out[-1] >= 63


def test_later_requests_of_a_trace_get_sixteen_spans_at_most() -> None:
    for group in calls_in_one_span(64, tokens_each=64)[10:]:
        assert len(group) <= 16


def test_a_trace_that_is_full_goes_on_in_others_that_link_back() -> None:
    groups = calls_in_one_span(1500, tokens_each=2)
    count = per_trace(groups)
    assert max(count.values()) <= 1000 and len(count) > 1
    roots = [s for g in groups for s in g.spans if A.ID in s.attributes]
    assert len(roots) == 1500
    moved = [root for root in roots if root.trace_id != TRACE]
    assert moved and all(root.links == ((TRACE, PARENT),) and root.parent_span_id is None for root in moved)


def test_many_stalls_keep_the_longest() -> None:
    rng = np.random.default_rng(1)
    lengths = np.where(rng.random(3000) < 0.3, rng.uniform(50, 100, 3000), 1.0)
    taken = steps(ms=list(lengths))
    found = tokens(recording(request(steps=taken), steps=[taken]))
    assert len(found) <= 512 and int(found.count.sum()) == 2999
    longest = np.sort(lengths)[-100:]
    own = (found.end_ns - found.begin_ns)[found.count == 1]
    assert np.isin((longest * MS).astype(np.int64), own).all()


def test_span_ids_differ() -> None:
    groups = shown(generation(tokens=600))
    ids = [s.span_id for g in groups for s in g.spans]
    ids += [f"{t.first_id + n:016x}" for g in groups for t in g.tokens for n in range(len(t))]
    assert len(set(ids)) == len(ids)
    assert all(len(i) == 16 and int(i, 16) for i in ids)


def test_a_stalled_token_has_a_span_that_links_to_who_caused_it() -> None:
    taken = steps(9, ms=[10, 10, 10, 90, 10, 10, 10, 10, 10])
    late, other = request("late", steps=taken), request("other")
    ends = taken.end_ns.tolist()
    stall = Stall("late", ends[2], ends[3], 10 * MS, StallCause.OTHERS_PREFILL, ("other", "not-here"))
    groups = list(to_spans(recording(late, other, steps=[taken]), stalls=[stall]))
    (found,) = [s for g in groups for s in g.spans if s.name == "token"]
    (rest,) = [t for g in groups for t in g.tokens]
    assert (found.start_ns, found.end_ns) == (ends[2], ends[3])
    assert found.links == ((other.trace_id, other.span_id),)
    assert found.attributes == {A.TOKEN_INDEX: 3, A.STALL_CAUSE: "others-prefill", A.STALL_USUAL: 10_000}
    assert rest.index.tolist() == [1, 2, 4, 5, 6, 7, 8] and found.parent_span_id == rest.parent_span_id
    assert int(found.span_id, 16) == rest.first_id + len(rest)


def test_a_stall_stays_alone_where_tokens_share_spans() -> None:
    taken = steps(2000)
    stall = Stall("r1", int(taken.end_ns[1000]), int(taken.end_ns[1001]), 10 * MS, StallCause.GC)
    groups = list(to_spans(recording(request(steps=taken), steps=[taken]), stalls=[stall]))
    (found,) = [s for g in groups for s in g.spans if s.name == "token"]
    assert found.attributes[A.TOKEN_INDEX] == 1001 and found.links == ()
    counts = [n for g in groups for t in g.tokens for n in t.count.tolist()]
    assert sum(counts) + 1 == 1999 and max(per_trace(groups).values()) <= 1000


def test_what_an_engine_starts_for_itself_is_the_service_of_who_started_it() -> None:
    server = process("a" * 16, script="api_server.py")
    core = replace(process("b" * 16, script="-c"), pid=2, parent_pid=1)
    worker = replace(process("c" * 16, script="-c"), pid=3, parent_pid=2)
    family = (server, core, worker)
    assert [service_name(one, family) for one in family] == ["api_server"] * 3
    assert service_name(core, (core, worker)) == "phasetrace" == service_name(None, family)
    loop = replace(core, parent_pid=2)
    assert service_name(loop, [loop]) == "phasetrace"
