"""Works out a request's marks and counts from its records and its steps."""

from __future__ import annotations

import hashlib
from typing import Any

from phasetrace.assemble.joins import FRONTEND
from phasetrace.assemble.request_state import RequestState, Span
from phasetrace.assemble.stream import Stream
from phasetrace.assemble.wall_clock import WallClock
from phasetrace.model import Interval, PrefixChunk, Request, RequestStatus, Sequence, StepCount
from phasetrace_agent import layout


def build_request(state: RequestState, stream: Stream | None, wall: WallClock, engine: str) -> Request:
    """The request as far as it is known now; `engine` is used where the request does not name its own."""
    return _Builder(state, stream, wall).request(engine)


class _Builder:
    def __init__(self, state: RequestState, stream: Stream | None, wall: WallClock) -> None:
        self.state = state
        self.data = state.data
        self.wall = wall
        self.times = stream.times if stream is not None else {}
        self.span = state.span(stream)
        self.yields = state.yields(self.span) if self.span else {}
        self.derived: set[str] = set()

    def request(self, engine: str) -> Request:
        state, data = self.state, self.data
        yielding = self._yielding()
        received = self._received()
        scheduled = self._scheduled()
        first_token = self._end_of(yielding[0], "first_token_ns") if yielding else None
        last_token = self._end_of(yielding[1], "last_token_ns") if yielding else None
        arrival = self._arrival(received, first_token)
        finished = self._finished()
        sequences = self._sequences()
        parent = data.get("parent") or {}
        trace, span = _own_span(data.get("own")) or _ids(state.process, state.ident)
        return Request(
            id=f"{state.process}-{state.ident}",
            external_id=data.get("external"),
            trace_id=parent.get("trace") or trace,
            span_id=span,
            parent_span_id=parent.get("span"),
            process=state.process,
            engine=data.get("engine") or engine,
            operation=data.get("operation") or "text_completion",
            model=self._model(),
            arrival_ns=arrival,
            received_ns=received,
            queued_ns=self._mark(layout.QUEUED),
            scheduled_ns=scheduled,
            first_token_ns=first_token,
            last_token_ns=last_token,
            finished_ns=finished,
            status=self._status(),
            error_type=data.get("error"),
            finish_reason=self._finish_reason(sequences),
            sequences=sequences,
            cached_tokens=data.get("cached"),
            external_cached_tokens=data.get("cached_external"),
            grammar_ns=self._grammar(received, scheduled),
            tokenize_ns=self._inside("tokenize", arrival, received),
            detokenize_ns=self._inside("detokenize", last_token, finished),
            streamed_ns=data.get("streamed"),
            first_output_ns=self._mark(layout.HANDED_OVER),
            mode=data.get("mode"),
            settings=self._settings(),
            stream=state.stream if self.span else None,
            first_step=self.span[0] if self.span else None,
            last_step=self.span[1] if self.span else None,
            prefill_chunks=self._prefill_chunks(yielding),
            yields=tuple(StepCount(step, n) for step, n in self.yields.items()),
            recomputed=self._recomputed(yielding),
            discarded_tokens=dict(data.get("discarded") or {}),
            preemptions=self._preemptions(),
            prefixes=self._prefixes(),
            derived=frozenset(self.derived),
        )

    def _mark(self, point: int) -> int | None:
        times = self.state.marks.get(point)
        return self.wall.at(min(times)) if times else None

    def _received(self) -> int | None:
        mark = self._mark(layout.RECEIVED)
        alone = self.state.owns_stream and self.state.side is None
        if mark is None and alone and self.state.arrived is not None:
            return self.wall.at(self.state.arrived)  # the call of generate() is both
        return mark

    def _scheduled(self) -> int | None:
        mark = self._mark(layout.SCHEDULED)
        if mark is None and self.span and self.span[0] in self.times:
            self.derived.add("scheduled_ns")
            return self.wall.at(self.times[self.span[0]][0])
        return mark

    def _yielding(self) -> Span | None:
        """The first and the last step that gave it a token."""
        if self.span is None:
            return None
        steps = range(self.span[0], self.span[1] + 1)
        first = next((i for i in steps if self._yields(i)), None)
        last = next((i for i in reversed(steps) if self._yields(i)), None)
        return None if first is None or last is None else (first, last)

    def _yields(self, index: int) -> bool:
        return index in self.times and self.yields.get(index, 1) > 0

    def _end_of(self, index: int, name: str) -> int:
        self.derived.add(name)
        return self.wall.at(self.times[index][1])

    def _arrival(self, received: int | None, first_token: int | None) -> int:
        """Where the request's clock starts: the best known begin of its frontend, never after the engine."""
        begin_wall = (self.data.get("parent") or {}).get("begin_wall")
        frontend = self.data.get("frontend_begin")
        tokenize = self.data.get("tokenize")
        known = [received, first_token, self._finished()]
        latest = min((t for t in known if t is not None), default=None)
        if frontend is not None:
            arrival = self.wall.at(frontend)
        elif begin_wall is not None:
            arrival = int(begin_wall)
        elif tokenize:
            arrived = self.state.arrived
            arrival = self.wall.at(tokenize[0] if arrived is None else min(tokenize[0], arrived))
        elif self.state.arrived is not None:
            arrival = self.wall.at(self.state.arrived)
        else:
            self.derived.add("arrival_ns")
            arrival = latest if latest is not None else self.wall.at(0)
        return arrival if latest is None else min(arrival, latest)

    def _finished(self) -> int | None:
        """The last word the user got: finished, handed over, or turned into text after that."""
        if self.state.finished is None:
            return None
        handed = max(self.state.marks.get(layout.HANDED_OVER, [0]))
        text = (self.data.get("detokenize") or (0, 0))[1]
        return self.wall.at(max(self.state.finished, handed, text))

    def _status(self) -> RequestStatus:
        if self.data.get("error"):
            return RequestStatus.FAILED
        return RequestStatus.CUT_OFF if self.state.finished is None else RequestStatus.OK

    def _sequences(self) -> tuple[Sequence, ...]:
        rows = [s for s in self.data.get("sequences") or () if isinstance(s, dict)]
        given = self._given() if len(rows) == 1 and rows[0].get("output") is None else None
        if given is not None:
            self.derived.add("sequences")
        return tuple(
            Sequence(
                prompt_tokens=row.get("prompt"),
                padding_tokens=row.get("padding"),
                output_tokens=given if given is not None else row.get("output"),
                finish_reason=row.get("reason"),
            )
            for row in rows
        )

    def _given(self) -> int | None:
        if self.span is None:
            return None
        return sum(self.yields.get(i, 1) for i in range(self.span[0], self.span[1] + 1))

    def _finish_reason(self, sequences: tuple[Sequence, ...]) -> str | None:
        if self.data.get("reason"):
            return str(self.data["reason"])
        reasons = {s.finish_reason for s in sequences}
        return reasons.pop() if len(reasons) == 1 else None

    def _prefill_chunks(self, yielding: Span | None) -> tuple[StepCount, ...]:
        if self.span is None:
            return ()
        last = yielding[0] if yielding else self.span[1]
        chunks = {i: n for i, n in self.state.scheduled.items() if n and self.span[0] <= i <= last}
        if yielding:
            chunks.setdefault(last, self.state.rows)
        return tuple(StepCount(i, n) for i, n in sorted(chunks.items()))

    def _recomputed(self, yielding: Span | None) -> tuple[StepCount, ...]:
        """From each return to the batch after the first token until it gave one again."""
        if self.span is None or yielding is None:
            return ()
        read: dict[int, int] = {}
        for again in sorted(self.state.joined)[1:]:
            if again <= yielding[0]:
                continue
            for index in range(again, self.span[1] + 1):
                read[index] = self.state.scheduled.get(index, self.state.rows)
                if self._yields(index):
                    break
        return tuple(StepCount(index, n) for index, n in sorted(read.items()) if n)

    def _grammar(self, received: int | None, scheduled: int | None) -> int | None:
        """How long its grammar was compiled, as far as it waited for that."""
        ready = self._mark(layout.GRAMMAR_READY)
        if ready is None or received is None:
            return None
        return max(0, min(ready, ready if scheduled is None else scheduled) - received)

    def _inside(self, name: str, begin: int | None, end: int | None) -> int | None:
        interval = self.data.get(name)
        if interval and self.state.side == FRONTEND:  # which does not know these marks
            return int(interval[1] - interval[0])
        if not interval or begin is None or end is None:
            return None
        low, high = self.wall.at(interval[0]), self.wall.at(interval[1])
        return max(0, min(high, end) - max(low, begin))

    def _settings(self) -> dict[str, bool | int | float | str]:
        """What was asked for, and how it was measured where that is out of the ordinary."""
        measured = {"forward_end": self.data.get("forward_end")}
        return {k: v for k, v in (self.data.get("settings", {}) | measured).items() if _plain(v)}

    def _preemptions(self) -> tuple[Interval, ...]:
        begins = sorted(self.state.marks.get(layout.PREEMPTED, ()))
        ends = sorted(self.state.marks.get(layout.RESUMED, ()))
        return tuple(
            Interval(self.wall.at(b), self.wall.at(e)) for b, e in zip(begins, ends, strict=False) if b <= e
        )

    def _prefixes(self) -> tuple[tuple[PrefixChunk, ...], ...]:
        known = self.state.prefixes
        return tuple(known.get(row, ()) for row in range(max(known) + 1)) if known else ()

    def _model(self) -> str | None:
        model = self.data.get("model")
        return model_key(self.state.process, model) if isinstance(model, int) else model


def model_key(process: str, number: int) -> str:
    """The key of a model, unique in a run: processes number theirs independently."""
    return f"{process}-{number}"


def _plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str))


def _own_span(told: Any) -> tuple[str, str] | None:
    """The ids under which its engine already told others of it."""
    return (str(told["trace"]), str(told["span"])) if told else None


def _ids(process: str, ident: int) -> tuple[str, str]:
    """A trace and a span id that look random and are the same whenever the spool is read again."""
    digest = hashlib.blake2b(f"{process}-{ident}".encode(), digest_size=24).hexdigest()
    return digest[:32], digest[32:]
