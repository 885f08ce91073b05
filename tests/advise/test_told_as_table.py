"""Where a recording has no steps, or a cause no rule for them, the rules for tables are asked."""

from dataclasses import replace

import pytest

from phasetrace.advise import diagnose
from phasetrace.analyze import breakdown
from phasetrace.model import Ceilings, Goal, ModelFacts, Recording
from phasetrace.semconv import Cause
from tests.advise import scenes
from tests.advise.server import Asked, load, serve

L8B = ModelFacts(
    key="m", name="Llama-3.1-8B", parameters=8_030_000_000, weight_bytes=16_060_000_000, layers=32,
    kv_heads=8, head_dim=128, hidden_size=4096, dtype="bfloat16", device="cuda",
)  # fmt: skip


def without_steps(recording: Recording) -> Recording:
    bare = scenes.shifted(recording, stream=None, first_step=None, last_step=None, prefill_chunks=())
    return replace(bare, steps=(), models={"m": L8B})


def test_others_prompts_by_the_time_that_a_step_should_take() -> None:
    chats, long = load(60, 120, prompt=64, output=80), [Asked(100 + 400 * k, 6000, 4) for k in range(18)]
    recording = without_steps(serve([*chats, *long], fixed_ms=9, row_ms=0.1, token_ms=0.08))
    found = diagnose(breakdown(recording), goal=Goal.TPOT, ceilings=Ceilings(2.04e12, 312e12))
    assert found.cause == Cause.PREFILL_INTERFERENCE
    assert found.findings[0].ns / found.breakdown.total_ns == pytest.approx(found.findings[0].share, rel=0.1)
    blind = diagnose(breakdown(recording), goal=Goal.TPOT)
    assert blind.cause == Cause.UNKNOWN


def test_warm_up_is_no_setting_to_compare_with() -> None:
    found = diagnose(breakdown(scenes.warm_up()))
    assert found.cause == Cause.WARM_UP
