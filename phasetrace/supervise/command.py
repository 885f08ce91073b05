"""`phasetrace run`: the command runs as it would without us, and what its processes record becomes a trace.

The order matters. What can go wrong for the user is asked first; then signals are held; then the command
starts; only then the heavy libraries are loaded, in the thread that drains.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

from phasetrace.emit import address, scrape
from phasetrace.errors import UsageError
from phasetrace.supervise import child, environment, output, signals
from phasetrace.supervise.background import Background
from phasetrace.supervise.folder import Folder, make_folder
from phasetrace.supervise.options import RunOptions, RunResult

WAKE_S = 0.5  # a child's end is a signal; this is for the case that one went astray


def run(command: Sequence[str], options: RunOptions) -> RunResult:
    """Run `command` to its end and write its trace.

    Raises:
        UsageError: the command cannot be started, or the trace not be written; nothing has run then.
    """
    if not command:
        raise UsageError("nothing to run: phasetrace run -- COMMAND...")
    outer = environment.joined(os.environ)
    if outer is not None:
        say("joins the run it is part of, whose trace will hold this too", options.quiet)
        child.replace(command, outer)
    output.check(options.output)
    address.check(options.otlp)
    scrape.address(options.metrics)  # raises where it is none
    folder = make_folder(options.spool)
    try:
        folder.leave_note(options.output, os.getpid())
        with signals.held() as mask:
            process = child.start(command, environment.recorded(os.environ, folder), mask)
            background = Background(folder, options)
            background.start()
            exit_code = wait_for(process)
            background.finish()
            wait_for_drain(background, process)
    except UsageError:
        folder.remove()
        raise
    return conclude(command, options, folder, background, exit_code)


def wait_for(process: child.Child) -> int:
    """The command's exit code; until it has ended, pass on the signals that are meant for it."""
    while True:
        exit_code = process.poll()
        if exit_code is not None:
            return exit_code
        info = signals.next_signal(WAKE_S)
        if info is not None and signals.is_for_command(info):
            process.send(info.si_signo)


def wait_for_drain(background: Background, process: child.Child) -> None:
    """Let the drain finish. Whoever asks us to end gets the trace at once, asking twice without its rest."""
    asked = False
    while background.is_alive():
        info = signals.next_signal(0.05)
        process.poll()  # as PID 1 we reap those that outlived the command
        if info is None or not signals.asks_to_end(info):
            continue
        if asked:
            return
        asked = True
        background.hurry()


def conclude(
    command: Sequence[str], options: RunOptions, folder: Folder, background: Background, exit_code: int
) -> RunResult:
    """Say what came of it, and clean up unless something is left to recover. The exit code stays."""
    left = None if is_whole(background) else folder.base
    try:
        tell(command, options, folder, background)
        if left:
            say(f"the rest is in {left}; for a whole trace: phasetrace recover {left}")
    except (KeyboardInterrupt, BrokenPipeError):  # who does not want the summary need not wait for it
        pass
    except Exception:
        with suppress(OSError):  # stderr may be what failed
            traceback.print_exc()
        say(f"the summary failed; the trace is in {options.output}")
    if not left:
        folder.remove()
    return RunResult(exit_code, options.output, left)


def is_whole(background: Background) -> bool:
    """Whether the trace has everything."""
    if background.is_alive() or background.error or background.still_running:
        return False
    return not background.written.failure


def tell(command: Sequence[str], options: RunOptions, folder: Folder, background: Background) -> None:
    """The summary, and what the user has to know even without one."""
    from phasetrace.supervise import summary

    if background.is_alive():
        say("stopped before the trace was whole", options.quiet)
    elif background.error:
        traceback.print_exception(background.error)
        say("the recording failed; the command was not affected")
    else:
        if not folder.spool.is_dir():
            say(f"{folder.spool} was deleted while the command ran: what came after that is lost")
        for line in summary.troubles(options.output, background.written, background.still_running):
            say(line)
        if not options.quiet:
            sys.stderr.write(summary.of_run(command, options.output, folder, background.written))


def say(line: str, quiet: bool = False) -> None:
    """One line to the user. A name in it, or what an endpoint answered, may hold anything."""
    if not quiet:
        from phasetrace.render.ink import Ink

        with suppress(OSError):  # whoever closed stderr does not want to hear it
            print(f"phasetrace: {Ink().say(line)}", file=sys.stderr, flush=True)
