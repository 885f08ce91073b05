"""Loaded by every Python that starts under `phasetrace run`, whatever its version: parses on Python 2.7.

Leaves a mark that this process was seen, starts the agent from Python 3.9 on, and hands over to the next
sitecustomize on the path, which ends up as sys.modules["sitecustomize"].
"""

import os
import sys


def _mark_seen():
    """An empty file seen/<pid>-<version>-<n>; n counts how often this pid has replaced itself by exec."""
    spool = os.environ.get("PHASETRACE_SPOOL")
    if not spool:
        return 0
    folder = os.path.join(spool, "seen")
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    name = os.path.join(folder, "%d-%d.%d-" % ((os.getpid(),) + tuple(sys.version_info[:2])))
    for execs in range(1000):
        try:
            os.close(os.open(name + str(execs), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as error:
            if error.errno == 17:  # EEXIST
                continue
        return execs
    return 0


def _start():
    try:
        execs = _mark_seen()
    except OSError:
        execs = 0
    if sys.version_info >= (3, 9):
        dont_write = sys.dont_write_bytecode
        sys.dont_write_bytecode = False  # of our own files, which would otherwise be compiled at every start
        try:
            from phasetrace_agent import bootstrap
        finally:
            sys.dont_write_bytecode = dont_write
        bootstrap.start(execs=execs, covers_children=True)


def _next_spec_or_path():
    """The next sitecustomize on the path after this one, or None."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.abspath(entry) for entry in sys.path]
    if here not in folders:
        return None
    # The ones before ours have had their chance, and going only forward ends even where two run directories
    # are nested.
    rest = sys.path[len(folders) - folders[::-1].index(here) :]
    if sys.version_info[0] == 2:
        import imp

        try:
            return imp.find_module("sitecustomize", rest)
        except ImportError:
            return None
    from _frozen_importlib_external import PathFinder  # importlib.machinery would load five modules more

    return PathFinder.find_spec("sitecustomize", rest)


def _hand_over(found):
    own = sys.modules.pop("sitecustomize", None)
    if sys.version_info[0] == 2:
        import imp

        sys.modules["sitecustomize"] = imp.load_module("sitecustomize", *found)
        return
    from importlib.util import module_from_spec

    module = module_from_spec(found)
    sys.modules["sitecustomize"] = module
    try:
        found.loader.exec_module(module)
    except BaseException:  # as without us: `site` reports it
        sys.modules["sitecustomize"] = own
        raise


try:
    _start()
except Exception:
    pass
try:
    _found = _next_spec_or_path()
except Exception:
    _found = None
if _found is not None:
    _hand_over(_found)
