"""Measurements become ceilings, and stand beside their floors."""

from typing import Any

import pytest

from phasetrace.analyze.bench import bench

MACHINE = {"what": "machine", "device": "cpu", "name": "cpu", "threads": 2, "dtype": "float32"}
RATES = {"bandwidth_bytes_s": 10e9, "flops_s": 100e9}
MODEL: dict[str, Any] = {
    "what": "model",
    "name": None,
    "parameters": 10_000_000,
    "weight_bytes": 40_000_000,
    "layers": 4,
    "kv_heads": 8,
    "head_dim": 64,
    "hidden_size": 512,
}


def test_floors_are_those_of_the_measured_machine() -> None:
    found = bench(
        [
            {**MACHINE, **RATES},
            MODEL,
            {"what": "prefill", "tokens": 100, "seconds": 0.04},
            {"what": "decode", "batch": 1, "context": 0, "seconds": 0.005},
            {"what": "decode", "batch": 2, "context": 0, "seconds": 0.0055},
            {"what": "seed", "tokens": 64, "read_s": 0.02, "written_s": 0.4},
        ]
    )
    assert found is not None and found.shape is not None
    assert found.shape.bytes_per_weight == 4
    assert found.decode[0].floor_s == pytest.approx(0.004)
    assert found.decode[0].efficiency == pytest.approx(0.8)
    assert found.fixed_s == pytest.approx(0.001)
    assert found.per_sequence_s == pytest.approx(0.0005)
    assert found.prefill[0].efficiency == pytest.approx((2e9 + 4 * 4 * 512 * 100 * 50) / 100e9 / 0.04)
    assert (found.ceilings.bandwidth_bytes_s, found.ceilings.flops_s) == (10e9, 100e9)


def test_a_machine_without_a_model_and_nothing_at_all() -> None:
    found = bench([{**MACHINE, **RATES}, {"progress": "x"}])
    assert (
        found is not None and found.shape is None and found.fixed_s is None and found.per_sequence_s is None
    )
    assert bench([{"error": "no torch"}]) is None
