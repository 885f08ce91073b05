"""All steps of a recording in one table with running sums: two subtractions split any stretch of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from phasetrace.model import NARROW, Ints, Part, Pause, Recording, Request, Steps, constant, joined

# The order in which a step's parts run, as far as engines agree on one. A step's columns hold totals, not
# places, so this order says which part a pause fell into and what a boundary in the middle of a step cuts
# off.
PART_ORDER = (
    Part.SCHEDULE,
    Part.STREAM,  # transformers 5.x calls the streamer after the criteria, which end a step
    Part.SETUP,
    Part.ENCODE,
    Part.PREPARE,
    Part.DRAFT,
    Part.FORWARD,
    Part.UPDATE,
    Part.LOGITS,
    Part.SAMPLING,
    Part.CRITERIA,
    Part.OUTPUT,
    Part.OTHER,
    Part.GC,
)
PLACE = {part: place for place, part in enumerate(PART_ORDER)}
GC_COLUMN = PLACE[Part.GC]
OTHER_COLUMN = PLACE[Part.OTHER]
UNKNOWN = -1  # in the columns of counts
BLOCK = 128  # rows between two running sums
AT_ONCE = 4096  # steps that pauses are taken out of: enough to be fast, and next to no memory


@dataclass(frozen=True, slots=True)
class Rows:
    """A run of rows of the table, half open."""

    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class StepTable:
    """Every step, ordered by process, stream and index. Column p of `parts` is PART_ORDER[p]."""

    index: Ints
    begin_ns: Ints
    end_ns: Ints
    parts: Ints
    sums: Ints  # sums[i] is the sum of parts[: i * BLOCK]: a row's own would take more memory than the parts
    running: Ints
    computed_tokens: Ints
    device_ns: Ints
    proposed: Ints  # tokens speculated, to be verified
    streams: Mapping[tuple[str, int], Rows]
    # What was looked up: all parts of the analysis ask for the same requests
    _found: dict[tuple[str, int | None, int | None, int | None], Rows | None] = field(
        default_factory=dict, repr=False
    )
    _decode: dict[tuple[int, int, int, int], Rows] = field(default_factory=dict, repr=False)

    def rows(self, request: Request) -> Rows | None:
        """The rows that the request took part in, or None where its steps were not recorded."""
        key = (request.process, request.stream, request.first_step, request.last_step)
        if key not in self._found:
            self._found[key] = self._look_up(*key)
        return self._found[key]

    def _look_up(self, process: str, stream: int | None, first: int | None, last: int | None) -> Rows | None:
        if stream is None or first is None or last is None:
            return None
        rows = self.streams.get((process, stream))
        if rows is None:
            return None
        begin, end = self._reach(rows, first), self._reach(rows, last + 1)
        return Rows(begin, end) if end > begin else None

    def row(self, rows: Rows, step: int) -> int | None:
        """Which of `rows`, all of one stream, is the step of this index."""
        row = self._reach(rows, step)
        return row if row < rows.end and self.index[row] == step else None

    def _reach(self, rows: Rows, step: int) -> int:
        # A number of the column's own type: numpy copies all of a narrow column for a wider one
        sought = self.index.dtype.type(min(step, NARROW) if self.index.itemsize == 4 else step)
        return rows.begin + int(self.index[rows.begin : rows.end].searchsorted(sought))

    def after_prefill(self, rows: Rows, first_token_ns: int) -> Rows:
        """Those of `rows` that come after the step which gave the first token."""
        passed = int(self.end_ns[rows.begin : rows.end].searchsorted(first_token_ns, side="right"))
        return Rows(rows.begin + passed, rows.end)

    def decode_rows(self, request: Request) -> Rows | None:
        """The rows of the steps that gave the request's second to last tokens; it may be without any."""
        rows, first, last = self.rows(request), request.first_token_ns, request.last_token_ns
        if rows is None or first is None or last is None:
            return None
        key = (rows.begin, rows.end, first, last)
        if key not in self._decode:
            after = self.after_prefill(rows, first)
            reached = int(self.end_ns[after.begin : after.end].searchsorted(last, side="right"))
            self._decode[key] = Rows(after.begin, after.begin + reached)
        return self._decode[key]

    def spent(self, begin: int, end: int) -> Ints:
        """Time of each part over the rows [begin, end)."""
        first, last = -(-begin // BLOCK), end // BLOCK
        if last - first <= 1:
            short: Ints = self.parts[begin:end].sum(axis=0)
            return short
        found: Ints = self.sums[last] - self.sums[first]
        if begin < first * BLOCK:
            found += self.parts[begin : first * BLOCK].sum(axis=0)
        if last * BLOCK < end:
            found += self.parts[last * BLOCK : end].sum(axis=0)
        return found


def step_table(recording: Recording) -> StepTable:
    """Lay all steps end to end, and take the garbage collector's time out of the parts it stopped."""
    chunks = sorted(recording.steps, key=lambda s: (s.process, s.stream, s.first_index))
    count = sum(len(chunk) for chunk in chunks)
    known = {part for chunk in chunks for part in chunk.parts}
    kind = np.result_type(np.int32, *{column.dtype for chunk in chunks for column in chunk.parts.values()})
    last = max((chunk.first_index + len(chunk) for chunk in chunks), default=0)
    # Column by column in memory: what runs down a column is fast, and one that no step has is never touched
    parts = np.zeros((len(PART_ORDER), count), kind).T
    index: Ints = np.zeros(count, np.int32 if last <= NARROW else np.int64)
    streams: dict[tuple[str, int], Rows] = {}
    row = 0
    for chunk in chunks:
        end = row + len(chunk)
        for part, column in chunk.parts.items():
            parts[row:end, PLACE[part]] = column
        index[row:end] = np.arange(chunk.first_index, chunk.first_index + len(chunk))
        key = (chunk.process, chunk.stream)
        streams[key] = Rows(streams[key].begin if key in streams else row, end)
        row = end
    begin_ns = joined([chunk.begin_ns for chunk in chunks])
    end_ns = joined([chunk.end_ns for chunk in chunks])
    if recording.pauses:
        _carve_pauses(parts, begin_ns, end_ns, streams, recording.pauses)
    return StepTable(
        index=index,
        begin_ns=begin_ns,
        end_ns=end_ns,
        parts=parts,
        sums=_sums(parts, known | {Part.GC}),
        running=_counts(chunks, "running"),
        computed_tokens=_counts(chunks, "computed_tokens"),
        device_ns=_counts(chunks, "device_ns"),
        proposed=_counts(chunks, "proposed"),
        streams=streams,
    )


def _sums(parts: Ints, known: Iterable[Part]) -> Ints:
    """(blocks + 1, parts): of all rows before each whole block."""
    blocks = len(parts) // BLOCK
    sums = np.zeros((blocks + 1, len(PART_ORDER)), np.int64)
    for place in (PLACE[part] for part in known):
        column = parts[: blocks * BLOCK, place].reshape(blocks, BLOCK)
        np.cumsum(column.sum(axis=1), out=sums[1:, place])
    return sums


def merged_pauses(pauses: Iterable[Pause], process: str) -> tuple[Ints, Ints]:
    """Begins and ends of a process's pauses, in order, those that overlap made one."""
    begins: list[int] = []
    ends: list[int] = []
    for pause in sorted((p for p in pauses if p.process == process), key=lambda p: p.begin_ns):
        if ends and pause.begin_ns <= ends[-1]:
            ends[-1] = max(ends[-1], pause.end_ns)
        elif pause.end_ns > pause.begin_ns:
            begins.append(pause.begin_ns)
            ends.append(pause.end_ns)
    return np.array(begins, np.int64), np.array(ends, np.int64)


def _carve_pauses(
    parts: Ints,
    begin_ns: Ints,
    end_ns: Ints,
    streams: Mapping[tuple[str, int], Rows],
    pauses: tuple[Pause, ...],
) -> None:
    """Take every pause out of the steps that it stopped, all streams together: most hold a pause or two."""
    by_process = {process: merged_pauses(pauses, process) for process in {p.process for p in pauses}}
    found: list[tuple[Ints, ...]] = []
    for (process, _), rows in streams.items():
        if process not in by_process or not len(rows):
            continue
        begins, ends = by_process[process]
        step_begin, step_end = begin_ns[rows.begin : rows.end], end_ns[rows.begin : rows.end]
        hit = slice(
            int(ends.searchsorted(step_begin[0], side="right")), int(begins.searchsorted(step_end[-1]))
        )
        first = rows.begin + step_end.searchsorted(begins[hit], side="right")
        found.append((first, rows.begin + step_begin.searchsorted(ends[hit]), begins[hit], ends[hit]))
    if not found:
        return
    first, last, begin, end = (np.concatenate(column) for column in zip(*found, strict=True))
    count = np.maximum(last - first, 0)
    pause = np.repeat(np.arange(len(count)), count)
    row = first[pause] + np.arange(len(pause)) - (np.cumsum(count) - count)[pause]
    for turn in _turns(row):  # pauses of one step one after the other
        for at in range(0, len(turn), AT_ONCE):
            some, by = row[turn[at : at + AT_ONCE]], pause[turn[at : at + AT_ONCE]]
            _carve(parts, some, begin[by] - begin_ns[some], end[by] - begin_ns[some])


def _turns(rows: Ints) -> list[Ints]:
    """Places in `rows`: of the first time that each row is named, then of the second time, and so on."""
    order = np.argsort(rows, kind="stable")
    place = np.arange(len(rows))
    begins = np.diff(rows[order], prepend=-1) > 0
    times = place - np.maximum.accumulate(np.where(begins, place, 0))
    return np.split(order[np.argsort(times, kind="stable")], np.cumsum(np.bincount(times))[:-1])


def _carve(parts: Ints, row: Ints, begin: Ints, end: Ints) -> None:
    """Move what lies in [begin, end), counted from each row's begin, to the column of the GC."""
    held = parts[row]
    bounds = np.cumsum(held[:, :GC_COLUMN], axis=1)
    before = held[:, GC_COLUMN]  # earlier pauses of the step have shortened the parts in front
    begin, end = (begin - before)[:, None], (end - before)[:, None]
    taken = np.clip(np.minimum(end, bounds) - np.maximum(begin, bounds - held[:, :GC_COLUMN]), 0, None)
    for place in np.flatnonzero(taken.any(axis=0)):
        parts[row, place] -= taken[:, place]
    parts[row, GC_COLUMN] += taken.sum(axis=1)


def _counts(chunks: list[Steps], name: str) -> Ints:
    columns: list[Ints | None] = [getattr(chunk, name) for chunk in chunks]
    return joined(
        [constant(UNKNOWN, len(chunk)) if c is None else c for c, chunk in zip(columns, chunks, strict=True)]
    )
