"""The recorder: what an integration says of its engine, one small record a verb.

All times are `clock.now()` of the caller. Ids of requests and streams come from `next_id()`. No verb
raises: a record that cannot be written is counted as lost, one that is not well formed is told as trouble,
once.
"""

from __future__ import annotations

import json  # noqa: F401  of layout: a fork beside a thread that imports it would find it locked
from itertools import count

from . import clock, layout, process, signals
from .spool import Spool
from .step_writer import StepWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


class Recorder(StepWriter):
    """Takes the verbs of every integration in this process. Opens no file before its first record."""

    def __init__(self, spool: Spool):
        self.enabled = True
        self.next_id: Callable[[], int] = count(1).__next__
        super().__init__(spool)
        self._facts: dict[tuple[int, int], dict[str, Any]] = {}
        self._troubled: set[str] = set()
        spool.on_first_segment = self._introduction

    @property
    def spool_folder(self) -> str:
        """Where the records go; the run's salt lies there."""
        return self._spool.folder

    def facts(self, scope: int, key: int, data: Mapping[str, Any]) -> None:
        """What holds for the process, an engine or a model; the latest wins key by key.

        What has been told already is not told again, so that nobody who tells has to remember it. What was
        lost has not been told.
        """
        known = self._facts.get((scope, key))
        told = {**(known or {}), **data}
        if told != known:
            self._facts[scope, key] = told
            if not self._blob(layout.FACTS, key, scope, clock.now(), data):
                self._facts[scope, key] = known or {}

    def arrived(self, request: int, time: int, data: Mapping[str, Any]) -> None:
        """The first word on a request."""
        self._blob(layout.ARRIVED, request, 0, time, data)

    def mark(self, request: int, point: int, time: int) -> None:
        """A request passed one of the points of the layout."""
        try:
            self._spool.write(layout.MARK, layout.encode_mark(request, point, time))
        except Exception as error:
            self.failed("recorder.mark", error)

    def detail(self, request: int, data: Mapping[str, Any]) -> None:
        """More on a request, merged into what is known; also after it has finished."""
        self._blob(layout.DETAIL, request, 0, clock.now(), data)

    def prefix(self, request: int, sequence: int, hashes: Sequence[int], lengths: Sequence[int]) -> None:
        """The hashed chunks of one sequence's prompt."""
        try:
            self._spool.write(layout.PREFIX, layout.encode_prefix(request, sequence, hashes, lengths))
        except Exception as error:
            self.failed("recorder.prefix", error)

    def finished(self, request: int, time: int, data: Mapping[str, Any]) -> None:
        """The last word on a request, but for details that come later."""
        self._blob(layout.FINISHED, request, 0, time, data)

    def ended(
        self,
        request: int,
        time: int,
        ending: str,
        prompt: int,
        output: int,
        cached: int,
        external: int,
        last_step: int,
    ) -> None:
        """`finished`, where nothing else is to be said."""
        try:
            payload = layout.encode_ended(request, time, ending, prompt, output, cached, external, last_step)
            self._spool.write(layout.ENDED, payload)
        except Exception as error:
            self.failed("recorder.ended", error)

    def pause(self, kind: int, generation: int, begin: int, end: int, collected: int) -> None:
        """The whole process stood still."""
        try:
            self._spool.write(layout.PAUSE, layout.encode_pause(kind, generation, begin, end, collected))
        except Exception as error:
            self.failed("recorder.pause", error)

    def device(self, stream: int, index: int, ns: int) -> None:
        """What a step took on the device, known later than the step."""
        try:
            self._spool.write(layout.DEVICE, layout.encode_device(stream, index, ns))
        except Exception as error:
            self.failed("recorder.device", error)

    def batch_state(
        self,
        stream: int,
        index: int,
        time: int,
        running: int,
        waiting: int,
        kv_used: int,
        kv_total: int,
        reason: int,
        preempted: int = 0,
    ) -> None:
        """Queues and KV blocks as a step was scheduled; said again only when they change."""
        try:
            payload = layout.encode_batch_state(
                stream, index, time, running, waiting, kv_used, kv_total, reason, preempted
            )
            self._spool.write(layout.BATCH_STATE, payload)
        except Exception as error:
            self.failed("recorder.batch_state", error)

    def step_tokens(self, stream: int, index: int, proposed: int, accepted: int, discarded: int) -> None:
        """Tokens of a step that were speculated or discarded; told where there are any."""
        try:
            payload = layout.encode_step_tokens(stream, index, proposed, accepted, discarded)
            self._spool.write(layout.STEP_TOKENS, payload)
        except Exception as error:
            self.failed("recorder.step_tokens", error)

    def execution(self, number: int, tokens: int, begin: int, end: int, device_ns: int) -> None:
        """A worker executed the `number`th step it was given."""
        try:
            payload = layout.encode_execution(number, tokens, begin, end, device_ns)
            self._spool.write(layout.EXECUTION, payload)
        except Exception as error:
            self.failed("recorder.execution", error)

    def stage(self, name: str, begin: int, end: int) -> None:
        """A part of an engine's start is over."""
        self._blob(layout.STAGE, 0, 0, begin, {"name": name, "end": end})

    def trouble(self, data: Mapping[str, Any]) -> None:
        """Something that makes the recording incomplete."""
        self._blob(layout.TROUBLE, 0, 0, clock.now(), data)

    def failed(self, where: str, error: BaseException) -> None:
        """Something of ours failed: told once a place, by the type of the error alone.

        What a signal handler of the application raised meanwhile is not ours: it goes on its way.
        """
        signals.pass_on(error)
        if where not in self._troubled:
            self._troubled.add(where)
            self.trouble({"where": where, "error": type(error).__name__})

    def off(self) -> None:
        """Stop recording: every hook sees it and returns."""
        self.enabled = False

    def at_exit(self) -> None:
        """Make the count of lost records exact."""
        self._spool.losses.at_exit()

    def forked(self) -> None:
        """In a forked child: what is recorded from here on is the child's own."""
        try:
            self._troubled.clear()
            self._spool.forked()
        except Exception:
            self.enabled = False

    def _blob(self, kind: int, ident: int, scope: int, time: int, data: Mapping[str, Any]) -> bool:
        """Whether it was written."""
        try:
            if time >= self._clock_due:
                self._record_clock(time)
            return self._spool.write(kind, layout.encode_blob(ident, scope, time, data))
        except Exception as error:
            self.failed("recorder.%d" % kind, error)
            return False

    def _introduction(self) -> list[tuple[int, bytes]]:
        """All facts again: a forked child's reader does not know what its parent said."""
        known = dict(self._facts)
        known[layout.PROCESS, 0] = {**process.facts(), **known.get((layout.PROCESS, 0), {})}
        now = clock.now()
        return [
            (layout.FACTS, layout.encode_blob(key, scope, now, data)) for (scope, key), data in known.items()
        ]
