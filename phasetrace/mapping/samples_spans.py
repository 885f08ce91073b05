"""Samples of processes and devices <-> spans of a file, side by side."""

from __future__ import annotations

from phasetrace.mapping.columns import pack, unpack
from phasetrace.mapping.span import Attributes, Span, derived_id, prefixed, under
from phasetrace.mapping.step_spans import process_trace
from phasetrace.mapping.typed import moments, packed
from phasetrace.model import Samples, Usage
from phasetrace.semconv import Attribute as A
from phasetrace.semconv import SpanName


def samples_to_span(samples: Samples) -> Span:
    """One span, however many samples."""
    begin, end = int(samples.times_ns[0]), int(samples.times_ns[-1])
    kept: Attributes = {A.PROCESS_KEY: samples.process, A.SAMPLE_TIME: pack(samples.times_ns)}
    if samples.device is not None:
        kept[A.SAMPLE_DEVICE] = samples.device
    kept |= prefixed(A.SAMPLE_COLUMN, {u.value: pack(column) for u, column in samples.columns.items()})
    ident = derived_id(8, samples.process, "samples", samples.device, begin, sorted(samples.columns))
    return Span(process_trace(samples.process), ident, None, SpanName.SAMPLES, begin, end, kept=kept)


def samples_from_span(span: Span) -> Samples:
    """The samples of a span; columns that this version does not know are passed over.

    Raises:
        ValueError: the columns do not fit together.
    """
    attributes = span.attributes | span.kept
    times = moments(unpack(packed(attributes[A.SAMPLE_TIME])))
    known = set(Usage)
    columns = {
        Usage(name): unpack(packed(value))
        for name, value in under(A.SAMPLE_COLUMN, attributes).items()
        if name in known
    }
    if any(len(column) != len(times) for column in columns.values()) or not len(times):
        raise ValueError("samples whose columns differ in length")
    device = attributes.get(A.SAMPLE_DEVICE)
    return Samples(
        str(attributes[A.PROCESS_KEY]), device if isinstance(device, int) else None, times, columns
    )
