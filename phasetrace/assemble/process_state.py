"""What is known so far of one process: its facts, its live requests, its streams."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from phasetrace.assemble.done import Done
from phasetrace.assemble.facts import ProcessFacts
from phasetrace.assemble.joined_request import join
from phasetrace.assemble.joins import CORE, FRONTEND, Joins
from phasetrace.assemble.request_builder import build_request
from phasetrace.assemble.request_state import RequestState
from phasetrace.assemble.spool import Record, SegmentInfo
from phasetrace.assemble.stream import CHUNK, Stream
from phasetrace.assemble.stretches import Stretches
from phasetrace.assemble.wall_clock import WallClock
from phasetrace.assemble.workers import Workers
from phasetrace.model import ModelFacts, PrefixChunk, Process, Request, Steps
from phasetrace_agent import layout

_MOST_SEQUENCES = 1 << 16  # of a request: one that is named in a damaged spool must not fill memory


class ProcessState:
    """Sorts a process's records into requests, streams and facts, and gives out what is complete."""

    def __init__(self, info: SegmentInfo, wall: WallClock, joins: Joins, workers: Workers) -> None:
        self.key = info.process
        self._info = info
        self._workers = workers
        self.facts = ProcessFacts(info, wall)
        self.stretches = Stretches(info.process, wall)
        self._wall = wall
        self._joins = joins
        self._requests: dict[int, RequestState] = {}
        self._done = Done()
        self._streams: dict[int, Stream] = {}
        self._ended = False
        self._handlers: dict[int, Callable[[bytes], None]] = {
            layout.FACTS: self._on_facts,
            layout.CLOCK: self._on_clock,
            layout.ARRIVED: self._on_arrived,
            layout.MARK: self._on_mark,
            layout.STEP: self._on_step,
            layout.DETAIL: self._on_detail,
            layout.PREFIX: self._on_prefix,
            layout.FINISHED: self._on_finished,
            layout.ENDED: self._on_ended,
            layout.PAUSE: self.stretches.add_pause,
            layout.DEVICE: self._on_device,
            layout.TROUBLE: self._on_trouble,
            layout.BATCH_STATE: self._on_batch_state,
            layout.STEP_TOKENS: self._on_step_tokens,
            layout.STAGE: self.stretches.add_stage,
            layout.EXECUTION: self._on_execution,
        }

    def feed(self, records: Iterable[Record]) -> None:
        """Take records in, in any order. One that cannot be understood is counted as lost."""
        counts: Counter[int] = Counter()
        for kind, payload in records:
            counts[kind] += 1
            handler = self._handlers.get(kind)
            try:
                if handler is not None:  # a newer agent may know kinds that we do not
                    handler(payload)
            except (ValueError, KeyError, TypeError, IndexError, struct.error):
                self.facts.lost(1)
        self.facts.count(counts)

    @property
    def holds_back(self) -> bool:
        """Whether something was taken in that cannot be given out yet."""
        return bool(self._requests) or any(stream.waiting() for stream in self._streams.values())

    @property
    def under_way(self) -> int:
        """Requests that have arrived here and not ended."""
        return sum(state.under_way for state in self._requests.values())

    def end(self) -> None:
        """The process is gone: whatever is live was cut off."""
        self._ended = True
        for state in self._requests.values():
            state.told = True

    # ---- records ----

    def _on_facts(self, payload: bytes) -> None:
        key, scope, _, data = layout.decode_blob(payload)
        self.facts.add(scope, key, data)
        if "worker_weight_bytes" in data:
            self._workers.told(self._info, data)

    def _on_clock(self, payload: bytes) -> None:
        self._wall.pair(*layout.decode_clock(payload))

    def _on_arrived(self, payload: bytes) -> None:
        ident, _, time, data = layout.decode_blob(payload)
        if (state := self._request(ident)) is not None:
            state.arrived = time
            self._merge(state, data)
            self.facts.seen(time)

    def _on_detail(self, payload: bytes) -> None:
        ident, _, _, data = layout.decode_blob(payload)
        if (state := self._request(ident)) is not None:
            self._merge(state, data)

    def _on_finished(self, payload: bytes) -> None:
        ident, _, time, data = layout.decode_blob(payload)
        self._finish(ident, time, data)

    def _on_ended(self, payload: bytes) -> None:
        self._finish(*layout.decode_ended(payload))

    def _finish(self, ident: int, time: int, data: dict[str, Any]) -> None:
        if (state := self._request(ident)) is not None:
            state.finished = time
            self._merge(state, data)
            self.facts.seen(time)

    def _on_mark(self, payload: bytes) -> None:
        ident, point, time = layout.decode_mark(payload)
        if (state := self._request(ident)) is not None:
            state.mark(point, time)

    def _on_prefix(self, payload: bytes) -> None:
        ident, sequence, hashes, lengths = layout.decode_prefix(payload)
        if sequence >= _MOST_SEQUENCES:
            raise ValueError("a request has not so many sequences")
        if (state := self._request(ident)) is not None:
            chunks = zip(hashes, lengths, strict=True)
            state.prefixes[sequence] = tuple(PrefixChunk(h, n) for h, n in chunks)

    def _on_step(self, payload: bytes) -> None:
        ident = layout.decode_step(payload)["stream"]
        stream = self._stream(ident)
        step = stream.add(payload)
        index = step["index"]
        self.facts.seen(stream.times[index][1])
        for request in step["joined"]:
            if (state := self._request(request)) is not None:
                state.joined.append(index)
        for request in step["left"]:
            if (state := self._request(request)) is not None:
                state.left.append(index)
        for request, tokens in step["scheduled"]:
            if (state := self._request(request)) is not None:
                state.scheduled[index] = tokens
        for request, tokens in step["yielded"]:
            if (state := self._request(request)) is not None:
                state.yielded[index] = tokens

    def _on_device(self, payload: bytes) -> None:
        ident, index, nanoseconds = layout.decode_device(payload)
        if ident in self._streams:
            self._streams[ident].device(index, nanoseconds)

    def _on_batch_state(self, payload: bytes) -> None:
        ident, index, time, _, waiting, used, _, *rest = layout.decode_batch_state(payload)
        self._stream(ident).state(index, time, waiting, used, *rest)

    def _on_step_tokens(self, payload: bytes) -> None:
        ident, index, *tokens = layout.decode_step_tokens(payload)
        self._stream(ident).tokens(index, *tokens)

    def _on_execution(self, payload: bytes) -> None:
        number, tokens, begin, end, device_ns = layout.decode_execution(payload)
        self._workers.executed(self._info, number, tokens, begin, device_ns)
        self.facts.seen(end)

    def _on_trouble(self, payload: bytes) -> None:
        self.facts.trouble(layout.decode_blob(payload)[3])

    def _merge(self, state: RequestState, data: dict[str, Any]) -> None:
        state.merge(data)
        if state.side is not None:
            self._joins.note(state)

    def _stream(self, ident: int) -> Stream:
        if ident not in self._streams:
            self._streams[ident] = Stream(self.key, ident, self._info.pid, self._workers)
        return self._streams[ident]

    def _request(self, ident: int) -> RequestState | None:
        """Its state; None where it was given out already, so that a late word makes no ghost of it."""
        if ident in self._done:
            return None
        return self._requests.setdefault(ident, RequestState(self.key, ident))

    # ---- what is complete ----

    def take(self) -> tuple[list[Request], list[Steps]]:
        """The requests that are complete, and the steps that came in up to the last take."""
        steps: list[Steps] = []
        requests: list[Request] = []
        engaged: dict[int, int] = {}  # shared streams up to the step that a request of this take needs
        for state in [s for s in self._requests.values() if self._complete(s)]:
            if state.given_out:  # with another side of it
                self._forget(state)
                continue
            stream = self._streams.get(state.stream)
            last = -1 if state.last_step is None else state.last_step
            if state.arrived is not None or state.finished is not None:
                request = self._build(state)
                requests.append(request)
                last = max(last, -1 if request.last_step is None else request.last_step)
            if stream is not None and state.owns_stream:
                steps += self._cut_own(state, stream)
            else:
                engaged[state.stream] = max(last, engaged.get(state.stream, -1))
            self._forget(state)
        for stream in list(self._streams.values()):
            steps += self._cut_shared(stream, engaged)
        return requests, steps

    def _build(self, state: RequestState) -> Request:
        """The request, together with its other sides."""
        frontend = self._joins.frontend_of(state) if state.side == CORE else None
        if frontend is None:
            return self._alone(state)
        cores = self._joins.cores_of(frontend)
        for side in (frontend, *cores):
            side.given_out = True
        # A side in another process has its steps there: they are not this request's
        return join(self._alone(frontend), [self._alone(core) for core in cores])

    def _alone(self, state: RequestState) -> Request:
        stream = self._streams.get(state.stream) if state.process == self.key else None
        return build_request(state, stream, self._wall, self.facts.engine)

    def _forget(self, state: RequestState) -> None:
        self._joins.forget(state)
        del self._requests[state.ident]
        self._done.add(state.ident)

    def process(self, with_counters: bool) -> Process | None:
        """The process, if something about it is new; grown counters are news only where asked for."""
        return self.facts.process(counters=with_counters or self._ended)

    def models(self) -> dict[str, ModelFacts]:
        """The models of which something is new since the last call."""
        return self.facts.new_models(self._workers.weights(self._info.pid))

    def _complete(self, state: RequestState) -> bool:
        """Whether nothing more is to be expected of it, on any side."""
        if state.given_out:
            return True
        if not state.has_told(self._streams.get(state.stream), self._ended):
            return False
        if state.side == FRONTEND and self._joins.cores_of(state):
            return False  # it is given out with the core's side
        frontend = self._joins.frontend_of(state) if state.side == CORE else None
        if frontend is None:
            return True
        return all(side.told for side in (frontend, *self._joins.cores_of(frontend)))

    def _cut_own(self, state: RequestState, stream: Stream) -> list[Steps]:
        indices = stream.waiting()
        span = state.span(stream)
        given = None
        steps = range(span[0], span[1] + 1) if span is not None else range(0)
        if span is not None and len(indices) == len(steps) and indices == list(steps):
            outputs = [s.get("output") for s in state.data.get("sequences") or ()]
            given = state.tokens_by_step(span, outputs)
        del self._streams[stream.ident]
        return list(stream.cut(indices, self._wall, lambda _: state.rows, given))

    def _cut_shared(self, stream: Stream, engaged: dict[int, int]) -> list[Steps]:
        """Steps of many requests are cut when a request of this take needs them, or when a chunk is full.

        Their times stay for the requests that live on.
        """
        own = self._requests.get(stream.ident)
        if own is not None and own.owns_stream and not self._ended:
            return []
        ready = stream.waiting() if self._ended else stream.settled(engaged.get(stream.ident, -1))
        if not (self._ended or stream.ident in engaged):
            ready = ready[: len(ready) // CHUNK * CHUNK]
        cut = list(stream.cut(ready, self._wall, self._rows_of, adapter_of=self._adapter_of))
        live = [s.first_step for s in self._requests.values() if s.stream == stream.ident]
        begun = [first for first in live if first is not None]
        newest = stream.last_index
        if newest is not None:
            stream.forget(min(begun, default=newest))
        return cut

    def _rows_of(self, request: int) -> int:
        state = self._requests.get(request)
        return state.rows if state is not None else 1

    def _adapter_of(self, request: int) -> int | None:
        """The number of its LoRA adapter."""
        state = self._requests.get(request)
        number = None if state is None else (state.data.get("settings") or {}).get("lora")
        return number if type(number) is int else None
