"""What recording costs in this process, measured when an engine is hooked: a run shows its own cost.

A loop of calls finds code and data in the caches; between an engine's steps they are not there. The recorder
samples what a step's record costs in its place, and what that is more is added.
"""

from __future__ import annotations

from . import clock, hooking, layout
from .recorder import Recorder
from .segment import Segment
from .spool import Spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ROUNDS, _CALLS = 5, 40  # some milliseconds in all


def costs(hooks: Mapping[str, int]) -> dict[str, int]:
    """Nanoseconds a record of each kind, with the hooks its engine spends on one; `record`: a step alone.

    `hooks` says how many wrapped calls belong to one record of a kind, such as {"step": 5, "arrived": 1}.
    """
    hook = hook_ns()
    bare = {kind: _each(write) for kind, write in _verbs().items()}
    with_hooks = {kind: round(write + hooks.get(kind, 0) * hook) for kind, write in bare.items()}
    return {**with_hooks, "record": round(bare["step"])}


def hook_ns() -> float:
    """What one wrapped call costs beyond the call: two clock readings and the wrapper."""

    class Engine:
        def plain(self) -> None: ...

        def wrapped(self) -> None: ...

    def look(*_: object) -> int:
        return clock.now()

    hooking.wrap(Engine, "wrapped", hooking.around(hooking.Hook("calibrate"), look, look))
    engine = Engine()
    return max(0.0, _each(lambda: engine.wrapped()) - _each(lambda: engine.plain()))


def _verbs() -> dict[str, Callable[[], None]]:
    """One typical call of each verb, on a recorder whose memory is no file."""
    recorder = Recorder(_Scratch(""))
    now = clock.now()
    codes, ends = (3, 4, 5, 6, 7), tuple(now + at for at in range(5))
    arrival = {"mode": "greedy", "model": 1, "settings": {"max_new_tokens": 100, "use_cache": True}}
    hashes = list(range(32))
    end = {"sequences": [{"prompt": 100, "padding": 0, "output": 100, "reason": "stop"}], "reason": "stop"}
    return {
        "step": lambda: recorder.step(1, 1, now, codes, ends),
        "arrived": lambda: recorder.arrived(1, now, arrival),
        "mark": lambda: recorder.mark(1, layout.SCHEDULED, now),
        "detail": lambda: recorder.detail(1, end),
        "finished": lambda: recorder.finished(1, now, end),
        "ended": lambda: recorder.ended(1, now, "stop", 100, 100, 0, 0, 1),
        "prefix": lambda: recorder.prefix(1, 0, hashes, hashes),
        "pause": lambda: recorder.pause(layout.GC, 2, now, now, 0),
        "execution": lambda: recorder.execution(1, 1, now, now, 1),
        "device": lambda: recorder.device(1, 1, now),
    }


def _each(call: Callable[[], None]) -> float:
    """The median round's time a call: the fastest would flatter, the slowest was somebody else's."""
    rounds = []
    for _ in range(_ROUNDS):
        begin = clock.now()
        for _ in range(_CALLS):
            call()
        rounds.append((clock.now() - begin) / _CALLS)
    return sorted(rounds)[_ROUNDS // 2]


class _Scratch(Spool):
    def _new_segment(self) -> Segment:
        import mmap

        return Segment("", mmap.mmap(-1, layout.SEGMENT_BYTES))
