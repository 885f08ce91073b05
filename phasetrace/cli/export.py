"""`phasetrace export`: a trace in the format of another tool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import click

from phasetrace.cli import inputs
from phasetrace.errors import UsageError
from phasetrace.model import Recording

# What the formats are called -> how they are made.
FORMATS: dict[str, Callable[[Recording], Iterator[bytes]]] = {
    "otlp": lambda recording: _spans_as("otlp_json", "to_lines", recording),
    "otlp-proto": lambda recording: _spans_as("otlp_proto", "to_protobuf", recording),
    "jaeger": lambda recording: _spans_as("jaeger_json", "to_jaeger", recording),
    "perfetto": lambda recording: _perfetto(recording),
}
BINARY = ("otlp-proto",)


@click.command()
@click.argument("sources", metavar="INPUT...", nargs=-1, required=True)
@click.option("--to", "form", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Where to. [default: stdout]"
)
def command(sources: tuple[str, ...], form: str, output: Path | None) -> int:
    """Write a trace in another format.

    otlp (JSON lines) and otlp-proto lose nothing, jaeger is what Jaeger's interface opens, perfetto is for
    looking at in ui.perfetto.dev. INPUT is whatever `diagnose` reads.
    """
    if output is None and form in BINARY and sys.stdout.isatty():
        raise UsageError(f"{form} is binary and not for a terminal; name a file with -o")
    pieces = FORMATS[form](inputs.read(sources))
    if output is None:
        sys.stdout.buffer.writelines(pieces)
        return 0
    try:
        with open(output, "wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    return 0


def _spans_as(module: str, function: str, recording: Recording) -> Iterator[bytes]:
    from phasetrace.mapping import to_spans

    pieces: Iterator[bytes] = getattr(import_module(f"phasetrace.emit.{module}"), function)(
        to_spans(recording)
    )
    return pieces


def _perfetto(recording: Recording) -> Iterator[bytes]:
    from phasetrace import analyze
    from phasetrace.emit.perfetto import to_perfetto

    return to_perfetto(analyze.breakdown(recording))
