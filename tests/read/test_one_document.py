"""A document of one JSON value is cut into its spans where they lie: never in memory as objects."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phasetrace.errors import NothingRecordedError
from phasetrace.read import read
from tests.read import writers

MADE = writers.spans()
COPIES = 1000
MOST = 1.5  # times the document: the text, which grows by an eighth at a time
BUFFERS = 4 << 20

DOCUMENTS: dict[str, Callable[[], Any]] = {
    "OTLP": lambda: many(writers.otlp(MADE)["resourceSpans"][0], "scopeSpans", "resourceSpans"),
    "Jaeger": lambda: {"data": [writers.jaeger(MADE)["data"][0]] * COPIES},
    "Zipkin": lambda: writers.zipkin(MADE) * COPIES,
    "Zipkin, traces": lambda: [writers.zipkin(MADE)] * COPIES,
    "bare spans": lambda: {"spans": writers.bare(MADE)["spans"] * COPIES},
    "array of spans": lambda: writers.bare(MADE)["spans"] * COPIES,
}


def many(resource: dict[str, Any], inner: str, outer: str) -> dict[str, Any]:
    """One resource with very many spans, as a backend gives a long trace."""
    return {outer: [{**resource, inner: resource[inner] * COPIES}]}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_takes_little_more_than_its_text(name: str, indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    text = json.dumps(DOCUMENTS[name](), indent=indent)
    text = text.replace("gen_ai.", "other.").replace("llm_request", "GET /")  # what is kept is another matter
    path.write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(NothingRecordedError, match=f"{len(MADE) * COPIES:,} spans"):
            read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST * len(text) + BUFFERS
