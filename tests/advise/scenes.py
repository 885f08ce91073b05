"""Recordings of applications, each with one thing wrong or nothing; only what the scene is about is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from phasetrace.model import Part, Pause, Recording
from phasetrace.model import Sequence as Row
from tests import builders
from tests.builders import EPOCH, MS, PROCESS

PLAIN: Mapping[Part, float] = {
    Part.FORWARD: 0.93,
    Part.PREPARE: 0.02,
    Part.UPDATE: 0.02,
    Part.SAMPLING: 0.01,
    Part.CRITERIA: 0.02,
}


def calls(
    n: int = 4,
    *,
    prefill_ms: float = 60,
    step_ms: float | Sequence[float] = 10,
    tokens: int = 32,
    prompt: int = 100,
    gap_ms: float = 2000,
    rows: Sequence[Row] | None = None,
    parts: Mapping[Part, float] = PLAIN,
    computed: int | None = None,
    first_prefill_ms: float | None = None,
    overlap: bool = False,
    model: Mapping[str, Any] | None = None,
    pauses: Sequence[Pause] = (),
    **fields: Any,
) -> Recording:
    """`n` calls of `generate()` with a break of `gap_ms` between them (a person reads), or all at once."""
    requests, taken, begin = [], [], EPOCH
    sequences = tuple(rows or (Row(prompt, 0, tokens, "length"),))
    positions = sum((row.prompt_tokens or 0) + (row.padding_tokens or 0) for row in sequences)
    for number in range(1, n + 1):
        first = first_prefill_ms if number == 1 and first_prefill_ms is not None else prefill_ms
        decode = [step_ms] * (tokens - 1) if isinstance(step_ms, (int, float)) else list(step_ms)
        each = None if computed is None else [positions, *[computed + k for k in range(len(decode))]]
        steps = builders.steps(
            stream=number,
            begin=begin,
            ms=[first, *decode],
            parts=parts,
            rows=len(sequences),
            prefill=positions,
            computed=each,
        )
        requests.append(builders.request(f"r{number}", steps=steps, sequences=sequences, **fields))
        taken.append(steps)
        begin = EPOCH + number * MS if overlap else int(steps.end_ns[-1]) + int(gap_ms * MS)
    facts = {builders.MODEL.key: replace(builders.MODEL, **(model or {}))}
    return builders.recording(*requests, steps=taken, models=facts, pauses=tuple(pauses))


def chat(**changes: Any) -> Recording:
    """Nothing wrong: a few short answers to short prompts."""
    return calls(**changes)


def long_output(tokens: int = 1200, **changes: Any) -> Recording:
    """Two answers that go on and on."""
    return calls(2, tokens=tokens, **changes)


def no_kv_cache(**changes: Any) -> Recording:
    """Each step takes about as long as the prefill, and a little more each time."""
    steps = [60 + 0.5 * k for k in range(31)]
    given = {"step_ms": steps, "computed": 101, "settings": {"use_cache": False}, **changes}
    return calls(**given)


def padding(long: int = 400, short: int = 12, **changes: Any) -> Recording:
    """One long prompt and eleven short ones a batch."""
    rows = (Row(long, 0, 12, "length"), *[Row(short, long - short, 12, "length")] * 11)
    return calls(tokens=12, prefill_ms=1500, step_ms=12, rows=rows, **changes)


def warm_up(**changes: Any) -> Recording:
    """The first of eight requests pays for seconds of preparation."""
    return calls(8, first_prefill_ms=2500, tokens=24, step_ms=5, **changes)


def small_batch(n: int = 64, **changes: Any) -> Recording:
    """Prompts one by one in a loop."""
    return calls(n, prompt=14, prefill_ms=14, step_ms=9, tokens=16, gap_ms=1, **changes)


def contending(n: int = 16, **changes: Any) -> Recording:
    """Calls from many threads, each with steps of its own."""
    return calls(n, prompt=14, prefill_ms=50, step_ms=36, tokens=16, overlap=True, **changes)


def stream_consumer(**changes: Any) -> Recording:
    """A streamer that takes longer than the model."""
    parts = {Part.FORWARD: 0.08, Part.STREAM: 0.9, Part.PREPARE: 0.02}
    given = {"tokens": 48, "step_ms": 55, "parts": parts, "settings": {"streamer": True}, **changes}
    return calls(**given)


def logits(share: float = 0.4, **changes: Any) -> Recording:
    """Processors that take a large part of each step."""
    return calls(parts={Part.FORWARD: 1 - share, Part.LOGITS: share}, **changes)


def collected(**changes: Any) -> Recording:
    """Five long stops of the garbage collector in each answer."""
    steps = [*[10] * 5, *[100] * 5, *[10] * 37]
    recording = calls(**{"tokens": 48, "step_ms": steps, **changes})
    pauses = [
        Pause(PROCESS, "gc", int(begin) + MS, int(begin) + 90 * MS, {"generation": 2})
        for steps in recording.steps
        for begin in steps.begin_ns[6:11]
    ]
    return replace(recording, pauses=tuple(pauses))


def shifted(recording: Recording, **changes: Any) -> Recording:
    """The same with every request changed."""
    return replace(recording, requests=tuple(replace(r, **changes) for r in recording.requests))
