"""The Collector's pipelines fit together, and name only what phasetrace's spans have."""

from __future__ import annotations

import operator
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from phasetrace.emit.sdk_spans import to_sdk_spans
from phasetrace.mapping import SpanMaker
from phasetrace.model import Interval, Recording
from phasetrace.read import read
from phasetrace.semconv import Attribute, Scope, SpanName
from tests.builders import EPOCH, MS, recording, request, steps

TARGETS = ("tempo", "jaeger", "clickhouse")
CONDITION = re.compile(
    r'attributes\["(?P<key>[^"]+)"\] (?P<sign>[<>]) (?P<bound>[\d.]+)|name == "(?P<name>[^"]+)"'
)
KINDS = ("receivers", "processors", "exporters", "connectors")


def merged(base: Any, more: Any) -> Any:
    """As the Collector merges its --config files: maps join, all else is replaced."""
    if not (isinstance(base, dict) and isinstance(more, dict)):
        return more
    return base | {key: merged(base.get(key), value) for key, value in more.items()}


def pipeline(root: Path, target: str) -> dict[str, Any]:
    folder = root / "collectors" / "pipelines"
    files = (yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("base", target))
    return dict(merged(*files))


@pytest.fixture(params=TARGETS)
def config(request: pytest.FixtureRequest, root: Path) -> dict[str, Any]:
    return pipeline(root, request.param)


def test_what_is_used_is_defined_and_what_is_defined_is_used(config: dict[str, Any]) -> None:
    defined = {kind: set(config.get(kind, {})) for kind in KINDS}
    used: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for stages in config["service"]["pipelines"].values():
        assert {"receivers", "exporters"} <= set(stages)
        for kind in ("receivers", "exporters"):
            for name in stages[kind]:
                used["connectors" if name in defined["connectors"] else kind].add(name)
        used["processors"] |= set(stages.get("processors", ()))
    assert used == defined


def test_connectors_lead_from_one_pipeline_into_another(config: dict[str, Any]) -> None:
    pipelines = config["service"]["pipelines"].values()
    for name in config["connectors"]:
        assert any(name in p["exporters"] for p in pipelines)
        assert any(name in p["receivers"] for p in pipelines)


def test_metrics_are_made_before_traces_are_thrown_away(config: dict[str, Any]) -> None:
    pipelines = config["service"]["pipelines"]
    assert "span_metrics" in pipelines["traces/all"]["exporters"]
    assert "tail_sampling" not in pipelines["traces/all"]["processors"]
    assert "tail_sampling" in pipelines["traces/kept"]["processors"]


def test_names_are_those_of_our_spans(root: Path) -> None:
    config = pipeline(root, "tempo")
    for policy in config["processors"]["tail_sampling"]["policies"]:
        assert policy["type"] in policy or policy["type"] == "always_sample"
        for condition in policy.get("ottl_condition", {}).get("span", ()):
            found = CONDITION.fullmatch(condition)
            assert found is not None, condition
            assert found["key"] is None or found["key"] in set(Attribute)
            assert found["name"] is None or found["name"] in set(SpanName)
    metrics = config["connectors"]["span_metrics"]
    assert {dimension["name"] for dimension in metrics["dimensions"]} <= set(Attribute)
    assert set(metrics["include_instrumentation_scope"]) == {str(Scope.ALL), str(Scope.PHASES)}


def test_a_request_that_waited_long_is_kept_and_a_quick_one_is_not(root: Path) -> None:
    policies = pipeline(root, "tempo")["processors"]["tail_sampling"]["policies"]
    conditions = {p["name"]: p["ottl_condition"]["span"][0] for p in policies if "ottl_condition" in p}
    assert {name: kept(conditions[name], queue_ms=0) for name in conditions} == dict.fromkeys(
        conditions, False
    )
    slow = {name: kept(conditions[name], queue_ms=2000, evicted=True) for name in conditions}
    assert slow == dict.fromkeys(conditions, True)


def test_every_condition_keeps_traces_of_real_runs(root: Path) -> None:
    policies = pipeline(root, "tempo")["processors"]["tail_sampling"]["policies"]
    conditions = {p["name"]: p["ottl_condition"]["span"][0] for p in policies if "ottl_condition" in p}
    runs = [read(path) for path in sorted((root / "tests" / "advise" / "recorded").glob("*.gz"))]
    assert len(runs) > 5
    found = {name: [fulfils(condition, run) for run in runs] for name, condition in conditions.items()}
    assert {name: any(each) for name, each in found.items()} == dict.fromkeys(conditions, True)
    assert not all(all(each) for each in found.values())


def kept(condition: str, queue_ms: int, evicted: bool = False) -> bool:
    taken = steps(5, begin=EPOCH + queue_ms * MS)
    away = (Interval(int(taken.begin_ns[2]), int(taken.end_ns[2])),) if evicted else ()
    one = request(steps=taken, arrival_ns=EPOCH, received_ns=EPOCH, preemptions=away)
    return fulfils(condition, recording(one, steps=[taken]))


def fulfils(condition: str, recorded: Recording) -> bool:
    """Whether one of the spans that an endpoint gets does."""
    found = CONDITION.fullmatch(condition)
    assert found is not None
    compare = operator.gt if found["sign"] == ">" else operator.lt
    for group in SpanMaker(for_file=False).spans(recorded):
        for span in to_sdk_spans(group):
            if found["name"] is not None:
                if span.name == found["name"]:
                    return True
            elif (value := (span.attributes or {}).get(found["key"])) is not None:
                assert isinstance(value, (int, float))
                if compare(value, float(found["bound"])):
                    return True
    return False


@pytest.mark.parametrize("name", ["jaeger", "grafana"])
def test_compose_files_pin_versions_bind_to_this_host_and_mount_what_is_there(name: str, root: Path) -> None:
    folder = root / "collectors" / "compose"
    services = yaml.safe_load((folder / f"{name}.yaml").read_text())["services"]
    for service in services.values():
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith(".") or (folder / source).exists(), source
        for needed in service.get("depends_on", ()):
            assert needed in services


def test_grafana_finds_its_sources_and_the_dashboards(root: Path) -> None:
    folder = root / "collectors" / "compose"
    services = yaml.safe_load((folder / "grafana.yaml").read_text())["services"]
    sources = yaml.safe_load((folder / "grafana" / "datasources.yaml").read_text())["datasources"]
    for source in sources:
        host = re.fullmatch(r"http://(\w+):\d+", source["url"])
        assert host is not None and host[1] in services
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (root / "dashboards" / Path(home).name).exists()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Debian's package prometheus")
def test_prometheus_takes_its_configuration(root: Path) -> None:
    file = root / "collectors" / "compose" / "grafana" / "prometheus.yaml"
    subprocess.run(["promtool", "check", "config", file], check=True, capture_output=True)
