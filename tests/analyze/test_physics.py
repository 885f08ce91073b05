"""Floors against numbers worked out by hand, and against each other."""

from dataclasses import replace

import pytest

from phasetrace.analyze import physics
from phasetrace.analyze.devices import device
from phasetrace.analyze.physics import Ceiling, Shape
from phasetrace.analyze.shapes import known_shape, mixture_of_experts

LLAMA_7B = Shape(6.74e9, 2, layers=32, kv_heads=32, head_dim=128, hidden_size=4096)
LLAMA_70B = Shape(70.55e9, 2, layers=80, kv_heads=8, head_dim=128, hidden_size=8192)
MIXTRAL = Shape(46.7e9, 2, active_parameters=12.9e9, layers=32, kv_heads=8, head_dim=128, hidden_size=4096)
A100 = Ceiling(2039e9, 312e12, 80e9)
H100 = Ceiling(3350e9, 989e12, 80e9)


def test_kv_bytes_per_token() -> None:
    assert physics.kv_bytes_per_token(LLAMA_7B) == 2 * 32 * 32 * 128 * 2  # half a MiB: every head has its own
    assert physics.kv_bytes_per_token(LLAMA_70B) == 327_680  # grouped: 8 of 64 heads
    assert physics.kv_bytes_per_token(replace(LLAMA_70B, kv_bytes=1.0)) == 163_840
    assert physics.kv_bytes_per_token(replace(LLAMA_70B, kv_heads=None)) is None


def test_a_decode_step_reads_the_weights_once_and_the_kv_of_every_sequence() -> None:
    alone = physics.decode_floor_s(LLAMA_7B, A100)
    assert alone == pytest.approx(13.48e9 / 2039e9)
    assert physics.decode_floor_s(LLAMA_7B, A100, batch=8) == alone  # sharing the read costs nothing
    long = physics.decode_floor_s(LLAMA_7B, A100, batch=8, context=2000)
    assert long == pytest.approx((13.48e9 + 8 * 2000 * 524_288) / 2039e9)
    assert physics.kv_share(LLAMA_7B, 8, 2000) == pytest.approx(8.39e9 / 21.87e9, rel=0.01)


def test_a_large_batch_is_bound_by_arithmetic() -> None:
    ridge = physics.ridge_tokens(LLAMA_7B, A100)
    assert ridge == pytest.approx(153, abs=1)
    assert physics.decode_floor_s(LLAMA_7B, A100, batch=4 * ridge) == pytest.approx(
        2 * 6.74e9 * 4 * ridge / 312e12
    )
    assert physics.ridge_tokens(replace(LLAMA_7B, bytes_per_weight=1), A100) == pytest.approx(ridge / 2)


def test_a_batch_soon_touches_every_expert() -> None:
    one = physics.touched_weight_bytes(MIXTRAL, 1)
    assert one == pytest.approx(2 * 12.9e9)
    assert physics.touched_weight_bytes(MIXTRAL, 16) > 0.99 * MIXTRAL.weight_bytes
    assert physics.prefill_flops(MIXTRAL, 1) < physics.prefill_flops(
        replace(MIXTRAL, active_parameters=None), 1
    )


def test_prefill_is_arithmetic_and_small_chunks_are_reads() -> None:
    whole = physics.prefill_floor_s(LLAMA_70B, H100, 2048)
    attention = 4 * 80 * 8192 * 2048 * 1024
    assert whole == pytest.approx((2 * 70.55e9 * 2048 + attention) / 989e12)
    small = physics.prefill_floor_s(LLAMA_70B, H100, 2048, chunk=64)
    assert small == pytest.approx(32 * 141.1e9 / 3350e9)
    assert physics.prefill_floor_s(LLAMA_70B, H100, 2048, chunk=1024) == pytest.approx(whole)
    cached = physics.prefill_floor_s(LLAMA_70B, H100, 48, context=2048)
    assert cached == pytest.approx(141.1e9 / 3350e9)  # a few new tokens still read all weights
    assert physics.prefill_floor_s(LLAMA_70B, Ceiling(1e12), 2048) is None


def test_how_many_sequences_fit() -> None:
    fits = physics.sequences_that_fit(LLAMA_7B, A100, 2048)
    assert fits == pytest.approx((72e9 - 13.48e9) / (524_288 * 2048))
    assert physics.sequences_that_fit(LLAMA_70B, A100, 2048) < 0  # the weights alone do not


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [
        ("H100-SXM", 3350),
        ("A100-SXM4-80GB", 2039),
        ("a100", 1555),
        ("NVIDIA RTX4090", 1008),
        ("L4", 300),
        ("L40S", 864),
    ],
)
def test_devices_are_known_by_what_people_write(name: str, bandwidth: float) -> None:
    found = device(name)
    assert found is not None and found.bandwidth_gb_s == bandwidth


def test_unknown_names_stay_unknown() -> None:
    assert device("Wormhole Galaxy") is None and device(None) is None and device("RTX 40900") is None
    assert known_shape("some-model-7x") is None


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8.03e9),
        ("Qwen2.5-7B", 7.62e9),
        ("Llama-2-70b-hf", 70.55e9),
        ("Mixtral-8x7B", 46.7e9),
    ],
)
def test_shapes_are_known_by_what_people_write(name: str, parameters: float) -> None:
    found = known_shape(name)
    assert found is not None and found.parameters == parameters


def test_mixtures_are_told_by_their_name() -> None:
    assert all(map(mixture_of_experts, ("Mixtral-8x7B", "Qwen3-30B-A3B", "DeepSeek-V3", "Qwen1.5-MoE-A2.7B")))
    assert not any(map(mixture_of_experts, ("Llama-3-8B", "Qwen2.5-7B", None, "gpt2-xl")))
