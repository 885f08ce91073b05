"""`phasetrace export`: a trace in the format of another tool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module

import click

from phasetrace.cli import inputs
from phasetrace.errors import UsageError
from phasetrace.model import Breakdown

# What the formats are called -> how they are made.
FORMATS: dict[str, Callable[[Breakdown], Iterator[bytes]]] = {
    "otlp": lambda found: _spans_as("otlp_json", "to_lines", found),
    "otlp-proto": lambda found: _spans_as("otlp_proto", "to_protobuf", found),
    "jaeger": lambda found: _spans_as("jaeger_json", "to_jaeger", found),
    "perfetto": lambda found: _perfetto(found),
}
BINARY = ("otlp-proto",)
PATIENCE_S = 600.0  # for all to be delivered


@click.command(short_help="Write a trace for another tool, or send it to an OTLP endpoint.")
@click.argument("sources", metavar="[INPUT...]", nargs=-1)
@click.option("--to", "form", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option(
    "-o", "--output", metavar="FILE|URL", help="Where to; otlp also to an OTLP endpoint. [default: stdout]"
)
def command(sources: tuple[str, ...], form: str, output: str | None) -> int:
    """Write a trace in another format, or send it to an OTLP endpoint.

    otlp (JSON lines) and otlp-proto lose nothing, jaeger is what Jaeger's interface opens, perfetto is for
    looking at in ui.perfetto.dev. INPUT is whatever `diagnose` reads, without one trace.json.
    """
    from phasetrace import analyze
    from phasetrace.emit import address

    output = None if output == "-" else output
    if output is None and form in BINARY and sys.stdout.isatty():
        raise UsageError(f"{form} is binary and not for a terminal; name a file with -o")
    sent = output is not None and address.is_meant(output)
    if sent and form != "otlp":
        raise UsageError(f"{form} is for files; an endpoint takes --to otlp")
    if sent:
        address.check(output)
    found = analyze.breakdown(inputs.read(sources or inputs.of_last_run()))
    if output is None:
        sys.stdout.buffer.writelines(FORMATS[form](found))
    elif sent:
        _send(found, output)
    else:
        _write(FORMATS[form](found), output)
    return 0


def _write(pieces: Iterator[bytes], output: str) -> None:
    try:
        with open(output, "wb") as file:
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror}") from None


def _send(found: Breakdown, url: str) -> None:
    from phasetrace.emit.endpoint import Endpoint

    endpoint = Endpoint.from_environment(url, whole=True)
    assert endpoint is not None
    endpoint.send(found.recording, found.stalls)
    delivery = endpoint.close(PATIENCE_S)
    if delivery.undelivered:
        raise UsageError(f"{delivery.undelivered:,} spans were not delivered to {url}: {delivery.error}")
    click.echo(f"phasetrace: delivered {delivery.delivered:,} spans to {url}", err=True)


def _spans_as(module: str, function: str, found: Breakdown) -> Iterator[bytes]:
    from phasetrace.mapping import to_spans

    write = getattr(import_module(f"phasetrace.emit.{module}"), function)
    pieces: Iterator[bytes] = write(to_spans(found.recording, stalls=found.stalls))
    return pieces


def _perfetto(found: Breakdown) -> Iterator[bytes]:
    from phasetrace.emit.perfetto import to_perfetto

    return to_perfetto(found)
