"""Starts the agent in a process: in a millisecond, writing nothing before there is something to record."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Recorder

_folder = ""  # of the spool; empty where nothing is recorded
_execs = 0
_recorder: Recorder | None = None


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
    global _recorder
    if _recorder is None and _folder:
        from . import recorder as module
        from .spool import Spool

        _recorder = module.start(Spool(_folder, _execs))
        import atexit

        atexit.register(_recorder.at_exit)
    return _recorder


def stop() -> None:
    """Record no more. What is hooked sees it and lets calls through."""
    from . import importhook

    importhook.uninstall()
    if _recorder is not None:
        _recorder.off()
