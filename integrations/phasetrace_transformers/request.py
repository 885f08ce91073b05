"""One call of `generate()` on its way: what is said of it to the recorder, and its timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from phasetrace_agent import clock, prefix
from phasetrace_agent.hooking import Hook
from phasetrace_agent.recorder import Recorder

from . import device, extract, parent
from .known import attempt, seen
from .timeline import Timeline

COUNTED_AT_ARRIVAL = 1 << 16  # ids and masks up to this size are read before the call, larger ones after it
HASHED_SEQUENCES = 256

# Each of these may fail on what nobody thought of, and the rest goes on
PROMPTS = Hook("transformers.prompts")
SETTINGS = Hook("transformers.settings")
PARENT = Hook("transformers.parent")
ENDINGS = Hook("transformers.endings")
PREFIX = Hook("transformers.prefix")
DEVICE = Hook("transformers.device")

_last_ends = parent.LastEnds()


class Request:
    """The outermost `generate()` of a thread."""

    __slots__ = (
        "recorder", "id", "call", "busy", "timeline", "device", "pending_events", "prompts", "ids",
        "mask", "parent", "detokenize", "ends", "is_parents",
    )  # fmt: skip

    def __init__(
        self, recorder: Recorder, model: Any, args: Sequence[Any], kwargs: Mapping[str, Any], before: Any
    ) -> None:
        self.recorder = recorder
        self.id = recorder.next_id()
        self.busy = False  # inside a hook: what it calls belongs to it
        self.is_parents = False  # this is a forked child's copy
        self.pending_events: Any = None
        known = seen(recorder, model)
        self.call = call = extract.Call(model, args, kwargs)
        self.device: device.Device | None = attempt(DEVICE, device.of, known.device, recorder.device)
        self.prompts: list[dict[str, int]] | None = None
        self.ids: extract.Rows | None = None
        self.mask: extract.Rows | None = None
        self.detokenize: list[int] | None = None
        self.ends: list[dict[str, Any]] | None = None
        chosen = extract.mode(call)
        data: dict[str, Any] = {
            "engine": "transformers",
            "operation": "chat" if before.in_pipeline and before.chat else "text_completion",
            "mode": chosen,
            "model": known.key,
            "settings": attempt(SETTINGS, extract.settings, call),
            "cached": extract.cached_tokens(call),
            "tokenize": before.tokenize if before.in_pipeline else None,
        }
        if extract.elements(call.ids) + extract.elements(call.mask) <= COUNTED_AT_ARRIVAL:
            attempt(PROMPTS, self._count_prompts)
            if self.prompts is not None:
                data["sequences"] = [prompt for prompt in self.prompts for _ in range(call.sequences_each)]
        self.parent: dict[str, Any] | None = attempt(PARENT, parent.active_span)
        if self.parent is not None:
            data["parent"] = self.parent
            data["frontend_begin"] = _last_ends.frontend_begin(self.parent, clock.now(), clock.wall())
        if self.device is not None:
            attempt(DEVICE, self._read_later)
        begin = clock.now()
        self.timeline = Timeline(begin, self._step, beams=chosen.startswith("beam"))
        recorder.arrived(self.id, begin, {k: v for k, v in data.items() if v is not None})

    def _step(
        self,
        index: int,
        begin: int,
        codes: Sequence[int],
        ends: Sequence[int],
        computed: int | None,
        tokens: int,
    ) -> None:
        own = self.id
        self.recorder.step(
            own, index, begin, codes, ends,
            (own,) if index == 0 else (), (),
            () if computed is None else ((own, computed),),
            () if tokens == 1 else ((own, tokens),),
        )  # fmt: skip
        if self.device is not None:
            attempt(DEVICE, self.device.clock.poll)

    def forward_begins(self) -> None:
        """Time the forward on its device too; one that no update followed ends here: a chunk of a prompt."""
        self.forward_ended()
        if self.device is not None:
            self.pending_events = attempt(DEVICE, self.device.clock.begin)

    def forward_ended(self) -> None:
        """The forward has been queued; what it takes on the device is told when it is known."""
        if self.pending_events is not None and self.device is not None:
            attempt(DEVICE, self.device.clock.end, self.pending_events, self.id, self.timeline.index)
            self.pending_events = None

    def finished(self, time: int, result: Any, error: BaseException | None) -> None:
        """The call has returned or raised, at `time`."""
        timeline = self.timeline
        timeline.finish(time, completed=error is None)
        data: dict[str, Any] = {"steps": timeline.index}  # these may stand in other threads' segments
        if timeline.inexact:
            data["forward_end"] = "upper-bound"
        if timeline.streamed:
            data["streamed"] = timeline.streamed
        if error is not None:
            data.update(reason="error", error=type(error).__name__)
        if self.prompts is None:
            attempt(PROMPTS, self._count_prompts)
        if error is None:
            data.update(attempt(ENDINGS, self._read_endings, extract.returned_ids(result)) or {})
        self.recorder.finished(self.id, time, data)
        if self.parent is not None:
            _last_ends.note(self.parent, time)
        attempt(PREFIX, self._hash_prompts)
        if self.device is not None:
            attempt(DEVICE, self.device.poll)

    def leave_to_parent(self) -> None:
        """Tell nothing more: the process that forked does."""
        self.is_parents = True
        self.timeline.write = _no_step
        self.device = self.pending_events = None

    def let_go(self) -> None:
        """Keep nothing of the application's alive."""
        self.call.forget()
        self.ids = None
        self.timeline.write = _no_step
        if self.pending_events is not None and self.device is not None:
            self.device.clock.give_back(self.pending_events)
            self.pending_events = None

    def _count_prompts(self) -> None:
        call = self.call
        self.ids = self.ids or extract.rows(call.ids)
        self.mask = self.mask or extract.rows(call.mask)
        self.prompts = extract.prompt_counts(call, self.ids, self.mask)

    def _read_later(self) -> None:
        """Ids and mask that lie on a device: copied behind what is queued there, told when they have come."""
        assert self.device is not None
        copies, call = self.device.copies, self.call
        copies.poll()
        ids, mask = call.ids, call.mask
        if mask is not None and not extract.on_host(mask) and len(mask.shape) == 2:
            copies.read(mask, self._tell_mask)
        if ids is not None and not extract.on_host(ids):
            copies.read(ids, self._tell_ids)

    def _tell_mask(self, mask: extract.Rows) -> None:
        self.mask = mask
        self.prompts = extract.prompt_counts(self.call, self.ids, mask)
        self.recorder.detail(self.id, self._endings(None))

    def _tell_ids(self, ids: extract.Rows) -> None:
        self.ids = ids
        self._hash_prompts()

    def _tell_endings(self, ids: extract.Rows) -> None:
        self.recorder.detail(self.id, self._endings(ids))

    def _read_endings(self, ids: Any) -> dict[str, Any]:
        """Sequences and finish reason, as far as they are known now; the rest is told when it comes."""
        if ids is not None and self.device is not None and not extract.on_host(ids):
            attempt(DEVICE, self.device.copies.read, ids, self._tell_endings)
        return self._endings(extract.rows(ids))

    def _endings(self, ids: extract.Rows | None) -> dict[str, Any]:
        """Sequences and finish reason, from the ids returned."""
        start = self.timeline.prompt_width
        if ids is not None and start is not None:
            self.ends = extract.endings(ids, start, self.call.eos)
        ends = self.ends
        sequences = extract.side_by_side(self.prompts, ends)
        found: dict[str, Any] = {} if sequences is None else {"sequences": sequences}
        if ends:
            found["reason"] = "stop" if all(end["reason"] == "stop" for end in ends) else "length"
        return found

    def _hash_prompts(self) -> None:
        """Hash each prompt; after the request, so that it stands in nobody's time to first token."""
        ids, self.ids = self.ids, None
        secret = prefix.salt(self.recorder)
        if ids is None or not secret:
            return
        for row, tokens in enumerate(extract.without_padding(ids, self.mask)[:HASHED_SEQUENCES]):
            hashes, lengths = prefix.chunks(tokens, secret)
            self.recorder.prefix(self.id, row * self.call.sequences_each, hashes, lengths)


def _no_step(*_: Any) -> None:
    """After the call there are no steps."""
