"""Triton's own trace file, as its documentation describes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from phasetrace.errors import PhasetraceError
from phasetrace.read import read
from tests.read.made_spans import MS, at, said

BEGIN = 2_356_425_054_587_444  # nanoseconds since the machine started


def moments(ident: int, **times: float) -> list[dict[str, Any]]:
    """An object for each moment, in milliseconds."""
    return [
        {"id": ident, "timestamps": [{"name": name, "ns": BEGIN + int(time * MS)}]}
        for name, time in times.items()
    ]


WHOLE = [
    {"id": 1, "model_name": "simple", "model_version": 1, "request_id": "r-1"},
    *moments(1, HTTP_RECV_START=0, HTTP_RECV_END=1, REQUEST_START=2, QUEUE_START=3, COMPUTE_START=50),
    *moments(1, COMPUTE_INPUT_END=51, INFER_RESPONSE_COMPLETE=900, COMPUTE_OUTPUT_START=890, COMPUTE_END=899),
    *moments(1, REQUEST_END=901, HTTP_SEND_START=902, HTTP_SEND_END=910),
    {"id": 1, "activity": "TENSOR_QUEUE_INPUT", "tensor": {"name": "input", "data": "0.1"}},
]
ENSEMBLE = [
    {"id": 1, "model_name": "ensemble", "model_version": 1},
    *moments(1, HTTP_RECV_START=0, REQUEST_START=1, REQUEST_END=900, HTTP_SEND_END=910),
    {"id": 2, "model_name": "tokenizer", "model_version": 1, "parent_id": 1},
    *moments(2, REQUEST_START=2, QUEUE_START=3, COMPUTE_START=4, COMPUTE_END=9, REQUEST_END=10),
    {"id": 3, "model_name": "tensorrt_llm", "model_version": 1, "parent_id": 1},
    *moments(3, REQUEST_START=11, QUEUE_START=12, COMPUTE_START=40, COMPUTE_END=890, REQUEST_END=895),
]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_request_is_put_together(indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(WHOLE, indent=indent))
    found = read(path)
    (request,) = found.requests
    assert (request.engine, request.model, request.external_id) == ("triton", "simple", "r-1")
    assert at(request) == {"received": 3, "scheduled": 50, "last_token": 899, "finished": 910}
    assert "from the start of the machine" in said(found)


def test_the_models_of_an_ensemble_are_one_request(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(ENSEMBLE))
    (request,) = read(path).requests
    assert request.model == "ensemble"
    assert at(request) == {"received": 3, "scheduled": 4, "last_token": 890, "finished": 910}


def test_a_file_that_is_still_written_to_gives_what_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(WHOLE)[:-100])
    assert len(read(path).requests) == 1


@pytest.mark.parametrize("parent", [1, 2, "x", [1]])
def test_parents_may_be_anything(parent: Any, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([*WHOLE, {"id": 1, "parent_id": parent}, {"id": 2, "parent_id": 1}]))
    try:
        assert len(read(path).requests) <= 1
    except PhasetraceError as error:
        assert str(path) in str(error)
