"""Each rule on tables made up for it, as a user would have them."""

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.advise import diagnose_table
from phasetrace.model import Diagnosis, Table
from phasetrace.read import read_any
from phasetrace.semconv import Cause
from tests.advise.table.reports import REPORTS
from tests.advise.table.situations import SITUATIONS

MADE = [*SITUATIONS, *REPORTS]

NO_FAULT = {Cause.HEALTHY, Cause.UNKNOWN, Cause.DATA_DEFECT}


def diagnosed(folder: Path, document: dict[str, Any]) -> Diagnosis:
    path = folder / "table.json"
    path.write_text(json.dumps(document))
    table = read_any(path)
    assert isinstance(table, Table)
    return diagnose_table(table)


@pytest.mark.parametrize(("accepted", "document"), [s[1:] for s in MADE], ids=[s[0] for s in MADE])
def test_the_cause_is_named(tmp_path: Path, accepted: set[str], document: dict[str, Any]) -> None:
    found = diagnosed(tmp_path, document)
    assert found.cause in accepted, found.findings[0].evidence
    first = found.findings[0]
    assert first.phase == Cause(first.cause).phase
    assert first.evidence and first.recommendation and first.confidence in ("high", "medium", "low")
    if first.prediction is not None:
        assert first.prediction.low <= first.prediction.after <= first.prediction.high
        assert first.prediction.ratio > 1


def test_every_cause_has_a_situation() -> None:
    assert {cause.value for cause in Cause} <= {name for _, accepted, _ in SITUATIONS for name in accepted}


@pytest.mark.parametrize("document", [s[2] for s in MADE], ids=[s[0] for s in MADE])
def test_less_is_told_where_the_names_are_missing(tmp_path: Path, document: dict[str, Any]) -> None:
    """Without model and hardware nothing breaks, and what is said then is no surer."""
    bare = {k: v for k, v in document.items() if k not in ("model", "hardware")}
    assert diagnosed(tmp_path, bare).findings


def test_a_met_slo_is_healthy_and_a_missed_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    group = {"ttft_s": 0.4, "queue_s": 0.3, "prefill_s": 0.1, "running": 4, "kv_cache_usage": 0.2}
    engine = {"name": "vllm", "knobs": {"max_num_seqs": 4}}
    path.write_text(json.dumps({"phasetrace": "summary/1", "engine": engine, "groups": [group]}))
    table = read_any(path)
    assert isinstance(table, Table)
    assert diagnose_table(table, slo={"ttft": 0.5}).cause == Cause.HEALTHY
    assert diagnose_table(table, slo={"ttft": 0.2}).cause == Cause.SLOTS_FULL


def test_commands_are_those_of_the_engine(tmp_path: Path) -> None:
    document = next(d for name, _, d in SITUATIONS if name == "few slots, sglang")
    assert "--max-running-requests" in diagnosed(tmp_path, document).findings[0].commands[0]


@pytest.mark.parametrize(("engine", "advised"), [("vllm", 1), ("transformers", 1), ("sglang", 0), ("tgi", 0)])
def test_recording_is_advised_only_for_engines_that_are_recorded(
    tmp_path: Path, engine: str, advised: int
) -> None:
    document = {"phasetrace": "summary/1", "engine": {"name": engine}, "groups": [{"e2e_s": 9.0}]}
    found = diagnosed(tmp_path, document)
    assert found.cause == Cause.UNKNOWN
    assert len(found.findings[0].commands) == advised
    assert ("A trace" in found.findings[0].recommendation) == bool(advised)
