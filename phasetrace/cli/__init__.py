"""The command line: one module a command, loaded when it is asked for, so that `run` starts at once.

A module offers a click command named `command`. Results go to stdout, all else to stderr; what the user did
wrong is one line that says what to do, and exit code 2.
"""

from __future__ import annotations

from phasetrace.cli import own_path  # noqa: F401  before anything that PYTHONPATH could shadow

# isort: split
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from phasetrace import __version__
from phasetrace.errors import PhasetraceError

COMMANDS = {
    "run": "phasetrace.cli.run",
    "diagnose": "phasetrace.cli.diagnose",
    "compare": "phasetrace.cli.compare",
    "show": "phasetrace.cli.show",
    "export": "phasetrace.cli.export",
    "explain": "phasetrace.cli.explain",
    "bench": "phasetrace.cli.bench",
    "recover": "phasetrace.cli.recover",
    "doctor": "phasetrace.cli.doctor",
}
COMPLETION = "_PHASETRACE_COMPLETE"  # how click names the variable by which a shell asks
USER_ERROR = 2
INTERRUPTED = 130  # as a shell says it: 128 + SIGINT
READER_GONE = 141  # 128 + SIGPIPE: what a pipeline's other programs return


class LazyGroup(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands in the order of the table: the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of a word that is none, say which was meant."""
        near = [] if args[0] in COMMANDS else difflib.get_close_matches(args[0], COMMANDS, n=1)
        if near:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx)
        return super().resolve_command(ctx, args)


HELP = """See where the time of LLM requests goes, and what to change.

\b
phasetrace run -- python app.py     record: any application that uses transformers or vLLM
phasetrace diagnose trace.json      every millisecond in a phase, the fix, the gain
phasetrace compare a.json b.json    what a change brought, and whether that is noise
"""  # \b keeps click from filling the paragraph


@click.group(cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="phasetrace")
def group() -> None:
    """All commands."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the process's exit code; never raises for what a user can cause."""
    replace_closed_streams()
    try:
        code = run_command(sys.argv[1:] if argv is None else list(argv))
        sys.stdout.flush()
        return code
    except click.exceptions.NoArgsIsHelpError as nothing:
        click.echo(nothing.format_message(), err=True)
        return USER_ERROR
    except click.ClickException as mistake:
        return complain(what_to_do(mistake), USER_ERROR)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except PhasetraceError as error:
        return complain(str(error), error.exit_code)
    except OSError as error:
        # Python flushes stdout once more at exit, which would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return READER_GONE
        where = f"{error.filename}: " if error.filename else "cannot write: "
        return complain(f"{where}{error.strerror or error}", USER_ERROR)


def replace_closed_streams() -> None:
    """Python has None for a stream that is closed at its start, and `print` would take stdout for stderr."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))


def run_command(argv: list[str]) -> int:
    """Find the command in `argv` and run it. Not `group.main`, which ends the process when a pipe breaks."""
    if instruction := os.environ.get(COMPLETION):
        from click.shell_completion import shell_complete

        return shell_complete(group, {}, "phasetrace", COMPLETION, instruction)
    try:
        with group.make_context("phasetrace", argv) as context:
            code = group.invoke(context)
    except click.exceptions.Exit as asked:  # --help, --version
        return asked.exit_code
    return code if isinstance(code, int) else 0


def what_to_do(mistake: click.ClickException) -> str:
    """Click's sentence on one line, and the help to look into where it proposes nothing."""
    said = " ".join(mistake.format_message().split())
    context = getattr(mistake, "ctx", None)
    if context is None or "Did you mean" in said or "`phasetrace" in said:
        return said
    return f"{said.rstrip('.')}; `{context.command_path} --help` says more"


def complain(message: str, code: int) -> int:
    """Say on stderr, in one line, what went wrong. A name in it may hold anything."""
    from phasetrace.render.ink import Ink

    with suppress(OSError):  # there is nobody to say it to
        click.echo(f"phasetrace: {Ink().say(message)}", err=True)
    return code
