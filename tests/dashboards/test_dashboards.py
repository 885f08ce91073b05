"""The dashboards name only what exists, and every query of theirs has data of a real run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
from prometheus_client.parser import text_string_to_metric_families

from phasetrace.model import Phase
from phasetrace.render.colors import LOOKS
from phasetrace.semconv import Attribute, Metric, SpanName
from scripts.dashboards.__main__ import DASHBOARDS, document
from tests.dashboards.observed import PROMETHEUS, Observed, fetch, observed

VALUES = {
    "$__rate_interval": "30s",
    '"$job"': '".*"',
    '"$model"': '".*"',
    '"$engine"': '".*"',
    '"$vllm"': '".*"',
}
OF_SCRAPES = {"job", "le", "reason"}  # labels of Prometheus and of vLLM
QUIET = {"Failed"}  # panels of what does not happen in a run that is well; their query answers zero


def panels(name: str) -> Iterator[dict[str, Any]]:
    for panel in json.loads(document(name))["panels"]:
        yield from (panel, *panel.get("panels", ()))


def queries(kind: str, key: str) -> Iterator[tuple[str, str]]:
    for name in DASHBOARDS:
        for panel in panels(name):
            if panel.get("datasource", {}).get("type") == kind:
                for target in panel["targets"]:
                    yield f"{name}: {panel['title']}", target[key]


def filled_in(promql: str) -> str:
    for variable, value in VALUES.items():
        promql = promql.replace(variable, value)
    assert "$" not in promql
    return promql


def selectors(node: Any) -> Iterator[Any]:
    """Every vector selector of a query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for part in ("expr", "lhs", "rhs", "vector_selector"):
        if (inner := getattr(node, part, None)) is not None:
            yield from selectors(inner)
    for argument in getattr(node, "args", ()) or ():
        yield from selectors(argument)


def series() -> set[str]:
    """Every name that Prometheus may know of ours."""
    ends = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
    return {f"{metric.prometheus}{end}" for metric in Metric for end in ends[metric.kind.value]}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_files_are_current(name: str, root: Path) -> None:
    found = (root / "dashboards" / f"{name}.json").read_text(encoding="utf-8")
    assert found == document(name), "run `python -m scripts.dashboards`"


def test_every_metric_of_ours_and_every_label_exists() -> None:
    labels = {key.replace(".", "_") for key in Attribute} | OF_SCRAPES
    named = set()
    for where, query in queries("prometheus", "expr"):
        for selector in selectors(promql_parser.parse(filled_in(query))):
            named.add(selector.name)
            assert selector.name in series() or selector.name.startswith("vllm:"), where
            assert {matcher.name for matcher in selector.matchers.matchers} <= labels, where
    assert len(named) > 20
    shown = {metric for metric in Metric if any(name.startswith(metric.prometheus) for name in named)}
    assert shown == set(Metric), "a metric that no dashboard shows"


def test_traces_are_searched_by_names_that_spans_have() -> None:
    found = list(queries("tempo", "query"))
    assert len(found) > 5
    for where, query in found:
        assert set(re.findall(r'name = "([^"]+)"', query)) <= {str(n) for n in SpanName}, where
        assert set(re.findall(r'span\."([^"]+)"', query)) <= {str(a) for a in Attribute}, where


def test_phases_have_the_colours_that_they_have_everywhere() -> None:
    panel = next(p for p in panels("fleet") if p["title"] == "Where the time goes")
    colors = {
        o["matcher"]["options"]: o["properties"][0]["value"]["fixedColor"]
        for o in panel["fieldConfig"]["overrides"]
    }
    assert colors == {phase.value: LOOKS[phase].hex for phase in Phase}


@pytest.fixture(scope="module")
def real(vllm_python: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    if PROMETHEUS is None:
        pytest.skip("Prometheus is not installed; Debian's package `prometheus` has it")
    with observed(vllm_python, tiny_model, tmp_path_factory.mktemp("observed")) as where:
        yield where


@pytest.mark.slow
def test_every_query_has_data_of_a_real_run(real: Observed) -> None:
    empty = []
    for where, query in queries("prometheus", "expr"):
        values = [float(sample["value"][1]) for sample in real.query(filled_in(query))]
        if not any(value == value for value in values):  # NaN: a rate of nothing
            empty.append(where)
    assert empty == []


@pytest.mark.slow
def test_every_choice_has_values(real: Observed) -> None:
    for name in DASHBOARDS:
        for variable in json.loads(document(name))["templating"]["list"]:
            if variable["type"] != "query":
                continue
            asked = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"])
            assert asked is not None
            assert real.label_values(asked[2], filled_in(asked[1])), variable["name"]


@pytest.mark.slow
def test_both_pages_have_every_name_that_a_query_names(real: Observed) -> None:
    told = {
        sample.name
        for url in (real.page, real.own)
        for family in text_string_to_metric_families(fetch(f"{url}/metrics"))
        for sample in family.samples
    }
    named = {
        s.name for _, q in queries("prometheus", "expr") for s in selectors(promql_parser.parse(filled_in(q)))
    }
    rare = {Metric.PAUSED.prometheus, Metric.PREEMPTIONS.prometheus}  # said once it happened
    assert named - told <= rare


@pytest.mark.slow
def test_phases_of_a_real_run_sum_to_its_requests(real: Observed) -> None:
    (phases,) = real.query(f"sum({Metric.PHASE_DURATION.prometheus}_sum)")
    (whole,) = real.query(f"sum({Metric.DURATION.prometheus}_sum)")
    assert float(phases["value"][1]) == pytest.approx(float(whole["value"][1]), rel=0.02)
