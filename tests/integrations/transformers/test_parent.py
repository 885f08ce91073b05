"""The application's span around a call."""

import sys
from types import SimpleNamespace

import pytest

from phasetrace_transformers.parent import LastEnds, active_span


def span(valid: bool = True, **more: int) -> SimpleNamespace:
    context = SimpleNamespace(is_valid=valid, trace_id=0xAB, span_id=0xCD)
    return SimpleNamespace(get_span_context=lambda: context, **more)


def within(monkeypatch: pytest.MonkeyPatch, current: SimpleNamespace) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", SimpleNamespace(get_current_span=lambda: current))


def test_an_application_without_opentelemetry_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    assert active_span() is None
    assert "opentelemetry.trace" not in sys.modules


def test_no_span_is_active(monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, span(valid=False))
    assert active_span() is None


def test_a_span_of_the_sdk_tells_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, span(start_time=123))
    assert active_span() == {"trace": f"{0xAB:032x}", "span": f"{0xCD:016x}", "begin_wall": 123}


def test_a_span_of_another_make_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    within(monkeypatch, span())
    assert (active_span() or {})["begin_wall"] is None


def test_the_frontend_begins_with_the_span_or_after_the_request_before() -> None:
    ends, parent = LastEnds(), {"span": "a", "begin_wall": 1_000}
    assert ends.frontend_begin(parent, now=50, wall=1_030) == 20
    ends.note(parent, 45)
    assert ends.frontend_begin(parent, now=50, wall=1_030) == 45
    assert ends.frontend_begin({"span": "b", "begin_wall": None}, now=50, wall=1_030) is None


def test_only_the_latest_spans_are_kept() -> None:
    ends = LastEnds()
    for number in range(1_000):
        ends.note({"span": str(number)}, number)
    assert ends.frontend_begin({"span": "3", "begin_wall": None}, 0, 0) is None
    assert ends.frontend_begin({"span": "999", "begin_wall": None}, 0, 0) == 999
