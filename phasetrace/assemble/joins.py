"""One request, several processes: a server's frontend and its engine core each tell their side of it.

Both name it by the engine's own id. A request that the frontend split into several (`n` > 1) is several in
the core, and the frontend says their names.
"""

from __future__ import annotations

from collections.abc import Iterator

from phasetrace.assemble.request_state import RequestState

FRONTEND, CORE = "frontend", "core"


class Joins:
    """Which requests of different processes are sides of the same one."""

    def __init__(self) -> None:
        self._frontends: dict[str, RequestState] = {}  # by each of its names
        self._cores: dict[str, RequestState] = {}

    def note(self, state: RequestState) -> None:
        """Take note of the names by which a side is known; again whenever more is told of it."""
        if state.side == CORE:
            self._cores.update(dict.fromkeys(_names(state), state))
        elif state.side == FRONTEND:
            self._frontends.update(dict.fromkeys(_names(state), state))

    def frontend_of(self, core: RequestState) -> RequestState | None:
        """The frontend's side, if it has told of itself."""
        return next((self._frontends[name] for name in _names(core) if name in self._frontends), None)

    def cores_of(self, frontend: RequestState) -> list[RequestState]:
        """The engine core's sides that have told of themselves, the first one first."""
        return [self._cores[name] for name in dict.fromkeys(_names(frontend)) if name in self._cores]

    def forget(self, state: RequestState) -> None:
        """It was given out."""
        known = self._cores if state.side == CORE else self._frontends
        for name in _names(state):
            if known.get(name) is state:
                del known[name]


def _names(state: RequestState) -> Iterator[str]:
    if state.data.get("external"):
        yield str(state.data["external"])
    children = state.data.get("children")
    if isinstance(children, list):
        yield from (str(name) for name in children)
