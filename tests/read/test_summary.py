"""`summary/1` is read strictly: what is wrong is named with its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.errors import TraceFormatError, UsageError
from phasetrace.model import Goal, Table
from phasetrace.read import read, read_any

WHOLE: dict[str, Any] = {
    "phasetrace": "summary/1",
    "goal": "ttft",
    "engine": {"name": "vllm", "version": "0.11.0", "knobs": {"max_num_seqs": 8, "unset": None}},
    "model": {"name": "m", "parameters": 7e9, "bytes_per_weight": 2},
    "hardware": {"name": "L4", "kind": "gpu", "count": 1},
    "groups": [
        {"label": "A", "ttft_s": 0.5, "streaming": True, "grammar": "json", "logprobs": 5},
        {"label": "B", "order": "later", "ttft_s": None, "knobs": {"max_num_seqs": 16}},
    ],
}


def table(tmp_path: Path, document: Any) -> Table:
    path = tmp_path / "case.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    found = read_any(path)
    assert isinstance(found, Table)
    return found


def test_every_value_arrives_and_null_is_unknown(tmp_path: Path) -> None:
    found = table(tmp_path, WHOLE)
    assert (found.goal, found.engine, found.knobs) == (Goal.TTFT, "vllm", {"max_num_seqs": 8})
    assert (found.model.parameters, found.hardware.kind) == (7e9, "gpu")
    a, b = found.groups
    assert (a.ttft_s, a.streaming, a.grammar, a.logprobs) == (0.5, True, "json", 5)
    assert (b.ttft_s, b.order, b.knobs) == (None, "later", {"max_num_seqs": 16})


def test_only_the_version_and_a_group_are_needed(tmp_path: Path) -> None:
    found = table(tmp_path, {"phasetrace": "summary/1", "groups": [{}]})
    assert (found.goal, found.engine, len(found.groups)) == (None, None, 1)


def test_an_impossible_number_is_read_for_the_diagnosis_to_name(tmp_path: Path) -> None:
    found = table(tmp_path, {"phasetrace": "summary/1", "groups": [{"queue_s": -48.0}]})
    assert found.groups[0].queue_s == -48.0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"goals": "ttft"}, "goals is no key of summary/1; did you mean goal?"),
        ({"phasetrace": "summary/2"}, "phasetrace must be 'summary/1'"),
        ({"goal": "latency"}, "goal must be one of ttft, tpot, e2e, throughput"),
        ({"groups": []}, "groups must be a list of at least one group"),
        ({"groups": [{"tpot": 1}]}, "groups[0].tpot is no key of summary/1; did you mean tpot_s?"),
        ({"groups": [{}, {"tpot_s": "fast"}]}, 'groups[1].tpot_s must be a number or null, not "fast"'),
        ({"groups": [{"tpot_s": True}]}, "groups[0].tpot_s must be a number or null, not true"),
        ({"groups": [{"tpot_s": 10**400}]}, "groups[0].tpot_s must be a number or null, not 1000"),
        ({"groups": [{"streaming": 1}]}, "groups[0].streaming must be true, false or null"),
        ({"groups": [{"order": "second"}]}, "groups[0].order must be one of first, later"),
        ({"groups": [3]}, "groups[0] must be an object, not 3"),
        ({"engine": {"name": "vllm", "nobs": {}}}, "engine.nobs is no key of summary/1; did you mean knobs?"),
        ({"engine": {"knobs": {"a": [1]}}}, "engine.knobs.a must be a number, a string, true or false"),
        ({"hardware": {"kind": "tpu"}}, "hardware.kind must be one of gpu, cpu"),
        ({"model": {"layer": 3}}, "model.layer is no key of summary/1; did you mean layers?"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(TraceFormatError) as raised:
        table(tmp_path, {"phasetrace": "summary/1", "groups": [{}], **change})
    assert said in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"phasetrace": "summary/1", "groups": [{"tpot_s": 1, "tpot_s": 2}]}',
        '{"phasetrace": "summary/1", "groups": [{"tpot_s": NaN}]}',
        '{"phasetrace": "summary/1", "groups": [{"tpot_s": 1e999}]}',
        '{"phasetrace": "summary/1", "groups": [',
        '{"phasetrace": "summary/1", "groups": ' + "[" * 100_000,
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceFormatError):
        table(tmp_path, text)


def test_whoever_needs_requests_is_told_that_a_table_has_none(tmp_path: Path) -> None:
    table(tmp_path, WHOLE)
    with pytest.raises(UsageError, match="only `diagnose` takes one"):
        read(tmp_path / "case.json")
