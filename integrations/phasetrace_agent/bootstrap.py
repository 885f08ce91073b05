"""Starts the agent in a process: in a millisecond, writing nothing before there is something to record."""

import os
import sys

from . import importhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Recorder

_STARTS = frozenset(("subprocess.Popen", "os.exec", "os.posix_spawn"))

_folder = ""  # of the spool; empty where nothing is recorded
_execs = 0
_run = ""  # the run directory that Python children should have on their path
_made: "dict[str, Recorder]" = {}  # at most one; `setdefault` is atomic


def start(
    spool: "str | os.PathLike[str] | None" = None, execs: int = 0, covers_children: bool = False
) -> None:
    """Record this process into the folder `spool`, or into $PHASETRACE_SPOOL. Never raises.

    `covers_children` is true where the agent came by PYTHONPATH, so that Python children are expected to
    have it too.
    """
    global _folder, _execs, _run
    try:
        folder = os.fspath(spool or os.environ.get("PHASETRACE_SPOOL") or "")
        if _folder or not folder:
            return
        _folder, _execs = os.path.abspath(folder), execs
        importhook.install()
        if covers_children and not _run:  # an audit hook stays for good
            # Taken now: the application may change its environment.
            _run = os.environ.get("PHASETRACE_RUN") or os.path.dirname(os.path.dirname(__file__))
            sys.addaudithook(_watch_children)
    except Exception:
        pass


def _watch_children(event: str, args: "tuple[object, ...]") -> None:
    """Sees every audit event, of which a start raises thousands: 110 ns each, unless it starts a process."""
    if event in _STARTS:
        try:
            from . import children

            children.look(event, args, _run)
        except Exception as error:
            pass_on(error)


def recorder() -> "Recorder | None":
    """The recorder of this process, made at first use; None where there is none."""
    if "recorder" not in _made and _folder:
        try:
            _make_recorder()
        except Exception as error:  # the run directory is gone, or not for this user to read
            pass_on(error)
            return None
    return _made.get("recorder")


def pass_on(error: Exception) -> None:
    """Raise an exception again that a signal handler of the application raised within our code."""
    try:
        from . import signals
    except Exception:
        return
    signals.pass_on(error)


def _make_recorder() -> None:
    import atexit

    from .recorder import Recorder
    from .spool import Spool

    made = Recorder(Spool(_folder, _execs))  # opens nothing yet, so that the loser of a race is no loss
    if _made.setdefault("recorder", made) is made:
        os.register_at_fork(after_in_child=made.forked)
        atexit.register(made.at_exit)


def stop() -> None:
    """Record no more: what is hooked lets calls through. `start` may follow, with another spool."""
    global _folder
    importhook.uninstall()
    _folder = ""
    stopped = _made.pop("recorder", None)
    if stopped is not None:
        stopped.at_exit()
        stopped.off()
