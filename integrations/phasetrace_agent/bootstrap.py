"""Starts the agent in a process: in a millisecond, writing nothing before there is something to record."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Recorder

_folder = ""  # of the spool; empty where nothing is recorded
_execs = 0
_made: dict[str, Recorder] = {}  # at most one; `setdefault` is atomic


def start(spool: str | os.PathLike[str] | None = None, execs: int = 0, covers_children: bool = False) -> None:
    """Record this process into the folder `spool`, or into $PHASETRACE_SPOOL. Never raises.

    `covers_children` is true where the agent came by PYTHONPATH, so that Python children are expected to
    have it too.
    """
    global _folder, _execs
    try:
        folder = os.fspath(spool or os.environ.get("PHASETRACE_SPOOL") or "")
        if _folder or not folder:
            return
        _folder, _execs = os.path.abspath(folder), execs
        from . import importhook

        importhook.install()
        if covers_children:
            from . import children

            children.watch()
    except Exception:
        pass


def recorder() -> Recorder | None:
    """The recorder of this process, made at first use; None where there is none."""
    if "recorder" not in _made and _folder:
        from .recorder import Recorder
        from .spool import Spool

        made = Recorder(Spool(_folder, _execs))  # opens nothing yet, so that the loser of a race is no loss
        if _made.setdefault("recorder", made) is made:
            import atexit

            os.register_at_fork(after_in_child=made.forked)
            atexit.register(made.at_exit)
    return _made.get("recorder")


def stop() -> None:
    """Record no more. What is hooked sees it and lets calls through."""
    from . import importhook

    importhook.uninstall()
    for made in _made.values():
        made.off()
