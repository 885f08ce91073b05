"""`phasetrace export`: a trace in the format of another tool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from phasetrace.cli import inputs
from phasetrace.errors import UsageError

# What the formats are called -> where they are written, and by what; loaded when asked for.
FORMATS = {
    "otlp": ("otlp_json", "to_lines"),
    "otlp-proto": ("otlp_proto", "to_protobuf"),
    "jaeger": ("jaeger_json", "to_jaeger"),
    "perfetto": ("perfetto", "to_perfetto"),
}
BINARY = ("otlp-proto",)
Writer = Callable[[Iterable[object]], Iterator[bytes]]


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
    from importlib import import_module

    from phasetrace.mapping import to_spans

    if output is None and form in BINARY and sys.stdout.isatty():
        raise UsageError(f"{form} is binary and not for a terminal; name a file with -o")
    groups = to_spans(inputs.read(sources))
    module, function = FORMATS[form]
    write: Writer = getattr(import_module(f"phasetrace.emit.{module}"), function)
    if output is None:
        sys.stdout.buffer.writelines(write(groups))
        return 0
    try:
        with open(output, "wb") as file:
            file.writelines(write(groups))
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None
    return 0
