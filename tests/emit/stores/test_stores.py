"""Real receivers with a store and an interface have what was sent: the same tree with the same numbers.

`make receivers` sets them up and runs this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from phasetrace import analyze
from phasetrace.cli import main
from phasetrace.emit.each_span import each_span
from phasetrace.emit.otlp_json import to_lines
from phasetrace.mapping import Span, to_spans
from phasetrace.semconv import Attribute as A
from tests.emit.perfetto.scene import server
from tests.emit.stores.stores import EXPERIMENT, Stored, mlflow, of_mlflow, of_phoenix, phoenix

pytestmark = pytest.mark.slow
Start = Callable[[Path], AbstractContextManager[str]]
US = 1000


@pytest.mark.parametrize(
    ("start", "stored", "grain_ns"),
    [(phoenix, of_phoenix, US), (mlflow, of_mlflow, 1)],
    ids=["phoenix", "mlflow"],
)
def test_the_same_tree_and_the_same_numbers(
    start: Start,
    stored: Callable[[str], dict[str, Stored]],
    grain_ns: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"x-mlflow-experiment-id={EXPERIMENT}")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    recorded = server().recording
    trace = tmp_path / "trace.json"
    trace.write_bytes(b"".join(to_lines(to_spans(recorded))))
    groups = to_spans(recorded, stalls=analyze.breakdown(recorded).stalls)
    sent = {span.span_id: span for group in groups if not group.file_only for _, span in each_span(group)}
    with start(tmp_path) as url:
        assert main(["export", str(trace), "--to", "otlp", "-o", url]) == 0
        found = wait_for(len(sent), stored, url)
    assert found.keys() == sent.keys() and len(sent) > 20
    for ident, span in sent.items():
        assert_same(span, found[ident], grain_ns)


def assert_same(span: Span, found: Stored, grain_ns: int) -> None:
    assert (found.name, found.parent) == (span.name, span.parent_span_id)
    assert found.begin_ns == span.start_ns // grain_ns * grain_ns
    assert found.end_ns == span.end_ns // grain_ns * grain_ns
    assert found.failed is (span.error is not None)
    given = {str(key): value for key, value in span.attributes.items()}
    assert {key: found.attributes.get(key) for key in given} == given
    if span.get(A.ID) is not None:  # what their pages of LLM calls show
        assert given.keys() >= {
            "gen_ai.request.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.output_tokens",
        }
        kind = found.attributes.get("mlflow.spanType", found.attributes.get("llm.model_name"))
        assert kind in ("LLM", "tiny")


def wait_for(spans: int, stored: Callable[[str], dict[str, Stored]], url: str) -> dict[str, Stored]:
    """They answer before they have stored."""
    found: dict[str, Stored] = {}
    end = time.monotonic() + 30
    while len(found) < spans and time.monotonic() < end:
        found = stored(url)
        time.sleep(0.2)
    return found
