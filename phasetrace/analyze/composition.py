"""Who was in a shared step: which requests decoded over how much context, and whose prompts it read.

Only for streams that several requests share; in a `generate()` call's own stream there is nobody else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.step_rows import Rows
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Ints, Request


@dataclass(frozen=True, slots=True)
class Decoding:
    """Stretches of rows in which a request gives one token a step and sequence. Columns of length n.

    A request has one, or more where steps gave it none or several tokens.
    """

    request: Ints  # its place in `Composition.requests`
    begin: Ints  # rows [begin, end)
    end: Ints
    sequences: Ints
    context: Ints  # tokens whose KV the first row reads, over all sequences; a row later `sequences` more


@dataclass(frozen=True, slots=True)
class Reading:
    """Chunks of prompts: one request's in one step. Columns of length n, in order of rows."""

    request: Ints
    row: Ints
    tokens: Ints
    attention: Ints  # tokens x the mean context before each
    again: npt.NDArray[np.bool_]  # after a preemption


@dataclass(frozen=True, slots=True)
class Composition:
    """All shared steps. The columns of rows have the length of the step table."""

    requests: tuple[Request, ...]
    processes: tuple[str, ...]  # that have shared streams
    decoding: Decoding
    reading: Reading
    shared: npt.NDArray[np.bool_]  # rows of shared streams
    sequences: Ints  # that decode
    positions: Ints  # that they compute: one each, and what was speculated
    context: Ints  # tokens whose KV they read
    prompt: Ints  # tokens read
    attention: Ints  # of those: tokens x the mean context before each


def composition(requests: Iterable[Request], table: StepTable) -> Composition | None:
    """Of all streams that several of the requests share; None where there is none."""
    placed = [r for r in requests if r.stream is not None and (r.process, r.stream) in table.streams]
    users = Counter((r.process, r.stream) for r in placed)
    together = tuple(r for r in placed if users[r.process, r.stream] > 1)
    if not together:
        return None
    found = _Found()
    for place, request in enumerate(together):
        rows = table.rows(request)
        if rows is not None:
            _add(found, place, request, rows, table)
    shared = np.zeros(len(table), np.bool_)
    for key in {key for key, count in users.items() if count > 1}:
        rows = table.streams[key]  # type: ignore[index]
        shared[rows.begin : rows.end] = True
    decoding, reading = found.decoding(), found.reading()
    size = len(table)
    sequences = over_rows(size, decoding, decoding.sequences)
    return Composition(
        requests=together,
        processes=tuple(sorted({r.process for r in together})),
        decoding=decoding,
        reading=reading,
        shared=shared,
        sequences=sequences,
        positions=np.where(sequences > 0, sequences + table.proposed.clip(0), 0),
        context=over_rows(size, decoding, decoding.context) + _grown(size, decoding),
        prompt=_at_rows(size, reading, reading.tokens),
        attention=_at_rows(size, reading, reading.attention),
    )


def over_rows(size: int, decoding: Decoding, values: Ints) -> Ints:
    """Sums over the stretches that hold a row."""
    change: Ints = np.zeros(size + 1, np.int64)
    np.add.at(change, decoding.begin, values)
    np.add.at(change, decoding.end, -values)
    return np.cumsum(change)[:-1]


def _grown(size: int, decoding: Decoding) -> Ints:
    """Sums of the tokens by which each stretch's context has grown since its first row."""
    rate = over_rows(size, decoding, decoding.sequences)
    reached: Ints = np.zeros(size + 1, np.int64)
    np.add.at(reached, decoding.end, decoding.sequences * (decoding.end - decoding.begin))
    return np.cumsum(rate) - rate - np.cumsum(reached)[:-1]


def _at_rows(size: int, reading: Reading, values: Ints) -> Ints:
    column: Ints = np.zeros(size, np.int64)
    np.add.at(column, reading.row, values)
    return column


@dataclass(slots=True)
class _Found:
    """Rows of the two tables while they are made."""

    stretches: list[tuple[int, ...]] = field(default_factory=list)
    chunks: list[tuple[int, ...]] = field(default_factory=list)

    def decoding(self) -> Decoding:
        return Decoding(*_columns(self.stretches, 5))

    def reading(self) -> Reading:
        request, row, tokens, attention, again = _columns(sorted(self.chunks, key=lambda c: c[1]), 5)
        return Reading(request, row, tokens, attention, again.astype(np.bool_))


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> tuple[Ints, ...]:
    table = np.array(rows, np.int64).reshape(len(rows), width)
    return tuple(np.ascontiguousarray(table[:, place]) for place in range(width))


def _add(found: _Found, place: int, request: Request, rows: Rows, table: StepTable) -> None:
    sequences = len(request.sequences) or 1
    cached = before = request.cached_tokens or 0
    for chunk in request.prefill_chunks:
        row = table.row(rows, chunk.step)
        if row is not None:
            found.chunks.append((place, row, chunk.tokens, _attention(before, chunk.tokens), False))
        before += chunk.tokens
    decode = table.decode_rows(request)
    if not decode:
        return
    prompt = request.prompt_tokens
    context = (before if prompt is None else max(prompt, cached)) + sequences
    if not request.yields and not request.recomputed:
        found.stretches.append((place, decode.begin, decode.end, sequences, context))
        return
    tokens = np.ones(len(decode), np.int64)
    for given in request.yields:
        row = table.row(decode, given.step)
        if row is not None:
            tokens[row - decode.begin] = given.tokens
    held = context + sequences * (np.cumsum(tokens) - tokens)
    decodes = tokens > 0
    for chunk in request.recomputed:
        row = table.row(decode, chunk.step)
        if row is not None:
            decodes[row - decode.begin] = False
    _add_again(found, place, request, decode, table, held)
    goes_on = decodes[:-1] & decodes[1:] & (tokens[:-1] == 1)
    begins = decodes & ~np.concatenate([[False], goes_on])
    stops = decodes & ~np.concatenate([goes_on, [False]])
    for begin, last in zip(np.flatnonzero(begins).tolist(), np.flatnonzero(stops).tolist(), strict=True):
        stretch = (decode.begin + begin, decode.begin + last + 1, sequences, int(held[begin]))
        found.stretches.append((place, *stretch))


def _add_again(
    found: _Found, place: int, request: Request, decode: Rows, table: StepTable, held: Ints
) -> None:
    """Chunks read after a preemption; what of the context is not read again was still cached."""
    left = reached = 0
    for chunk in reversed(request.recomputed):
        row = table.row(decode, chunk.step)
        if row is None:
            continue
        context = int(held[row - decode.begin])
        left = chunk.tokens + (left if context == reached else 0)
        reached = context
        before = max(0, context - left)
        found.chunks.append((place, row, chunk.tokens, _attention(before, chunk.tokens), True))


def _attention(before: int, tokens: int) -> int:
    return tokens * (2 * before + tokens) // 2
