"""Whose request one of the engine core is: one of its own, one of `n` sequences, one of a beam search."""

from __future__ import annotations

from typing import Any

from phasetrace_agent import clock
from phasetrace_agent.recorder import Recorder

from . import extract
from .beams import Beams, searching
from .calls import Entry, current


class Arrivals:
    """Tells of each request of a user once, with the first that it asks of the engine core."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._parents: dict[str, Entry] = {}  # of several sequences each, while those are registered

    def entry_of(self, name: str, group: Any, rootless: bool) -> Entry:
        """The request of the user; `rootless` if vLLM makes a span of it that has no parent."""
        search = searching.get()
        if search is not None:
            if search.entry is None:
                search.entry = Beams(self.recorder.next_id(), current.get())
                self._tell(search.entry, name, rootless, mode="beam", settings=search.settings)
            self.recorder.detail(search.entry.id, {"child": name})
            return search.entry
        if group is None:
            return self._single(name, rootless)
        entry = self._parents.get(group.request_id)
        if entry is None:
            n = group.sampling_params.n
            entry = self._parents[group.request_id] = Entry(self.recorder.next_id(), current.get(), n)
            self._tell(entry, group.request_id, rootless, settings={"n": n})
        entry.children.append(name)
        if len(entry.children) == entry.left:
            del self._parents[group.request_id]
            self.recorder.detail(entry.id, {"children": entry.children})
        return entry

    def _single(self, name: str, rootless: bool) -> Entry:
        entry = Entry(self.recorder.next_id(), current.get(), 1)
        self._tell(entry, name, rootless)
        return entry

    def _tell(self, entry: Entry, name: str, rootless: bool, **more: Any) -> None:
        call = entry.call
        data: dict[str, Any] = {"engine": "vllm", "side": "frontend", "external": name, **more}
        time = clock.now()
        if call is not None:
            time = call.begin
            if call.exchange:
                call.entries.append(entry)
            if call.chat:
                data["operation"] = "chat"
            if call.parent is not None:
                data["parent"] = call.parent
            if call.tokenize is not None:
                data["tokenize"] = call.tokenize
        if rootless and "parent" not in data:
            entry.own = data["own"] = extract.new_span()
        self.recorder.arrived(entry.id, time, data)
