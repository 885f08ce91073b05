"""Recordings of every shape, for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from phasetrace.model import (
    Defect,
    Interval,
    ModelFacts,
    Part,
    Pause,
    PrefixChunk,
    Process,
    Recording,
    Request,
    RequestStatus,
    Samples,
    Sequence,
    Stage,
    StepCount,
    Steps,
    Usage,
)
from tests.builders import EPOCH, PROCESS

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
counts = st.integers(0, 1 << 40)
times = st.integers(EPOCH, EPOCH + (1 << 45))
scalars = st.one_of(
    st.booleans(), st.integers(-(1 << 63), (1 << 63) - 1), st.floats(allow_nan=False), st.text(max_size=8)
)
facts = st.dictionaries(words, scalars, max_size=3)
maybe_count = st.none() | counts
maybe_time = st.none() | times
hexes = {size: st.text("0123456789abcdef", min_size=size, max_size=size) for size in (16, 32)}
step_counts = st.lists(st.builds(StepCount, counts, counts), max_size=3).map(tuple)


@st.composite
def steps(draw: st.DrawFn, stream: int) -> Steps:
    n = draw(st.integers(1, 5))
    size = st.lists(counts, min_size=n, max_size=n)
    column = size.map(lambda values: np.array(values, np.int64))
    names = draw(st.lists(st.sampled_from(list(Part)), unique=True, max_size=3))
    durations = draw(column)
    begin = draw(times) + np.concatenate([[0], np.cumsum(durations)[:-1]]).astype(np.int64)
    maybe = st.none() | column
    return Steps(
        process=PROCESS,
        stream=stream,
        first_index=draw(st.integers(0, 1 << 30)),
        begin_ns=begin,
        end_ns=begin + durations,
        parts={name: draw(column) for name in names},
        device_ns=draw(maybe),
        running=draw(maybe),
        new_tokens=draw(maybe),
        computed_tokens=draw(maybe),
        waiting=draw(maybe),
        kv_blocks=draw(maybe),
        waits=draw(maybe),
        proposed=draw(maybe),
        accepted=draw(maybe),
        discarded=draw(maybe),
        preempted=draw(maybe),
        adapters=draw(maybe),
    )


sequences = st.builds(Sequence, maybe_count, maybe_count, maybe_count, st.none() | words)
chunks = st.builds(PrefixChunk, st.integers(0, (1 << 64) - 1), st.integers(0, 1 << 31))
requests = st.builds(
    Request,
    id=words,
    trace_id=hexes[32],
    span_id=hexes[16],
    parent_span_id=st.none() | hexes[16],
    process=st.just(PROCESS),
    engine=words,
    operation=words,
    model=st.none() | words,
    arrival_ns=times,
    sent_ns=maybe_time,
    received_ns=maybe_time,
    queued_ns=maybe_time,
    scheduled_ns=maybe_time,
    first_token_ns=maybe_time,
    last_token_ns=maybe_time,
    finished_ns=maybe_time,
    first_output_ns=maybe_time,
    status=st.sampled_from(RequestStatus),
    error_type=st.none() | words,
    finish_reason=st.none() | words,
    sequences=st.lists(sequences, max_size=3).map(tuple),
    cached_tokens=maybe_count,
    external_cached_tokens=maybe_count,
    grammar_ns=maybe_count,
    tokenize_ns=maybe_count,
    detokenize_ns=maybe_count,
    streamed_ns=maybe_count,
    mode=st.none() | words,
    settings=facts,
    stream=st.none() | st.integers(0, 3),
    first_step=st.none() | st.integers(0, 5),
    last_step=st.none() | st.integers(0, 5),
    prefill_chunks=step_counts,
    yields=step_counts,
    recomputed=step_counts,
    discarded_tokens=st.dictionaries(words, counts, max_size=2),
    preemptions=st.lists(st.builds(Interval, times, times), max_size=2).map(tuple),
    prefixes=st.lists(st.lists(chunks, max_size=3).map(tuple), max_size=2).map(tuple),
    external_id=st.none() | words,
    derived=st.frozensets(words, max_size=2),
)
processes = st.builds(
    Process,
    key=st.just(PROCESS),
    pid=counts,
    parent_pid=counts,
    executable=st.none() | words,
    script=st.none() | words,
    python=st.none() | words,
    begin_ns=maybe_time,
    end_ns=maybe_time,
    engines=st.dictionaries(words, words, max_size=2),
    refused=st.dictionaries(words, words, max_size=2),
    facts=facts,
    hook_calls=counts,
    hook_ns=counts,
    lost_records=counts,
    troubles=st.lists(words, max_size=2).map(tuple),
    uncovered=st.lists(words, max_size=2).map(tuple),
)
models = st.builds(
    ModelFacts,
    key=words,
    name=st.none() | words,
    parameters=maybe_count,
    layers=maybe_count,
    dtype=st.none() | words,
    compiled=st.none() | st.booleans(),
)
pauses = st.builds(
    Pause,
    process=st.just(PROCESS),
    kind=words,
    begin_ns=times,
    end_ns=times,
    detail=st.dictionaries(words, counts, max_size=2),
)

stages = st.builds(
    lambda name, begin, ns: Stage(PROCESS, name, begin, begin + ns), words, times, st.integers(0, 1 << 40)
)
starts = st.lists(stages, max_size=3, unique_by=lambda s: (s.name, s.begin_ns))


@st.composite
def samples(draw: st.DrawFn, device: int | None) -> Samples:
    moments = draw(st.lists(times, min_size=1, max_size=4))
    names = draw(st.sets(st.sampled_from(Usage), max_size=3))
    columns = {n: np.array([draw(st.integers(-1, 1 << 40)) for _ in moments]) for n in sorted(names)}
    return Samples("" if device is not None else PROCESS, device, np.array(sorted(moments)), columns)


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    shapes = draw(st.lists(models, max_size=2))
    found = draw(st.lists(pauses, max_size=4, unique_by=lambda p: p.begin_ns))
    return Recording(
        requests=tuple(draw(st.lists(requests, max_size=3, unique_by=lambda r: (r.trace_id, r.span_id)))),
        steps=tuple(draw(steps(stream)) for stream in range(draw(st.integers(0, 2)))),
        pauses=tuple(sorted(found, key=lambda p: p.begin_ns)),
        stages=tuple(sorted(draw(starts), key=lambda s: (s.begin_ns, s.process, s.name))),
        samples=tuple(
            sorted(
                (draw(samples(device)) for device in draw(st.sets(st.sampled_from([None, 0, 1])))),
                key=lambda s: (int(s.times_ns[0]), s.process, s.device or 0),
            )
        ),
        models={model.key: model for model in shapes},
        processes=tuple(draw(st.lists(processes, max_size=1))),
        defects=tuple(draw(st.lists(st.builds(Defect, words), max_size=2, unique=True))),
        begin_ns=draw(maybe_time),
        end_ns=draw(maybe_time),
        source=draw(words),
    )
