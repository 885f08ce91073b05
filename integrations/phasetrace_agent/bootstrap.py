"""Starts the agent in a process: within a millisecond, and with nothing written before there is something to record."""

import os

_folder = ""  # of the spool; empty where nothing is recorded
_execs = 0
_recorder = None


def start(spool=None, execs=0, covers_children=False):  # type: ignore[no-untyped-def]
    """Record this process into the folder `spool`, or into $PHASETRACE_SPOOL. Again does no harm; never raises.

    `covers_children` is true where the agent came by PYTHONPATH, so that Python children are expected to have it too.
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


def recorder():  # type: ignore[no-untyped-def]
    """The recorder of this process, made at first use; None where there is none."""
    global _recorder
    if _recorder is None and _folder:
        from . import recorder as module
        from .spool import Spool

        _recorder = module.start(Spool(_folder, _execs))
        import atexit

        atexit.register(_recorder.at_exit)
    return _recorder


def stop():  # type: ignore[no-untyped-def]
    """Record no more. What is hooked sees it and lets calls through."""
    from . import importhook

    importhook.uninstall()
    if _recorder is not None:
        _recorder.off()
