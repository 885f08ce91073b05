"""The model of a step against measured prefill and decode times, and against itself."""

import csv
import statistics
from pathlib import Path

import pytest

from phasetrace.analyze import expected, physics
from phasetrace.analyze.physics import Ceiling, Shape

HIDDEN = {"BLOOM-176B": 14336, "Llama-2-70B": 8192, "CodeLlama-34B": 8192, "Llama-2-7B": 4096}
WITHIN = 0.15  # median error
SHAPE = Shape(6.74e9, 2, layers=32, kv_heads=32, head_dim=128, hidden_size=4096)


def test_measured_times_are_predicted(root: Path) -> None:
    measured = root.parent / "shared" / "cases" / "roofline.csv"
    if not measured.is_file():
        pytest.skip("no measured times beside the repository (../shared/cases/roofline.csv)")
    decode, prefill = [], []
    with measured.open(newline="") as lines:
        for row in csv.DictReader(lines):
            shape = Shape(
                float(row["parameters"]),
                float(row["bytes_per_weight"]),
                layers=float(row["layers"]),
                kv_heads=float(row["kv_heads"]),
                head_dim=float(row["head_dim"]),
                hidden_size=HIDDEN[row["model"]],
            )
            n, batch, prompt = float(row["devices"]), float(row["batch"]), float(row["prompt_tokens"])
            ceiling = Ceiling(
                float(row["bandwidth_gb_s"]) * 1e9 * n, float(row["tflops"]) * 1e12 * n, None, n
            )
            context = prompt + float(row["output_tokens"]) / 2
            step = expected.decode_step_s(shape, ceiling, batch, context, row["hardware"])
            read = expected.prefill_s(shape, ceiling, batch * prompt, prompt, None, row["hardware"])
            assert read is not None
            decode.append(abs(step * 1e3 / float(row["tpot_ms"]) - 1))
            prefill.append(abs(read * 1e3 / float(row["prefill_ms"]) - 1))
    assert statistics.median(decode) <= WITHIN
    assert statistics.median(prefill) <= WITHIN


def test_expected_times_lie_above_their_floors() -> None:
    ceiling = Ceiling(2039e9, 312e12, 80e9)
    for batch in (1, 8, 64):
        assert expected.decode_step_s(SHAPE, ceiling, batch, 500) > physics.decode_floor_s(
            SHAPE, ceiling, batch, 500
        )
    floor = physics.prefill_floor_s(SHAPE, ceiling, 1000)
    found = expected.prefill_s(SHAPE, ceiling, 1000)
    assert floor is not None and found is not None and found > floor


def test_devices_that_communicate_wait_for_each_other() -> None:
    one, two = expected.communication_s(SHAPE, 1), expected.communication_s(SHAPE, 2)
    assert one == 0 and two > 0
    assert expected.communication_s(SHAPE, 8, 4096) > expected.communication_s(SHAPE, 8, 1)
