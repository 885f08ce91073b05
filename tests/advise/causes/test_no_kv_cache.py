"""`no-kv-cache` in recorded steps: a good case, a bad one, and where too little is known."""

from phasetrace.advise.causes import no_kv_cache
from phasetrace.model import Finding
from tests.advise import scenes
from tests.advise.asked import ask, without_steps


def test_no_kv_cache() -> None:
    assert ask(no_kv_cache, scenes.long_output()) is None
    assert isinstance(ask(no_kv_cache, scenes.no_kv_cache()), Finding)
    assert ask(no_kv_cache, scenes.no_kv_cache(mode="prompt_lookup", settings={})) is None
    assert ask(no_kv_cache, without_steps(scenes.no_kv_cache())) is None


def test_a_cache_wins_more_where_arithmetic_binds_early() -> None:
    def wins(device: str, computed: int) -> float:
        scene = scenes.no_kv_cache(model={"device": device, "dtype": "float32"}, computed=computed)
        found = ask(no_kv_cache, scene)
        return found.prediction.ratio if isinstance(found, Finding) and found.prediction else 1.0

    assert wins("cpu", 150) > wins("cuda", 1_000) > wins("cuda", 150) == 1.0


def test_no_kv_cache_is_seen_without_the_setting() -> None:
    assert isinstance(ask(no_kv_cache, scenes.no_kv_cache(settings={})), Finding)


def test_no_kv_cache_does_not_extrapolate_from_nearly_equal_lengths() -> None:
    """Steps that compute 100 to 130 positions and take much the same time tell nothing of a step for one."""
    flat = scenes.no_kv_cache(step_ms=[55 + 4 * (k % 3 - 1) for k in range(31)])
    found = ask(no_kv_cache, flat)
    assert isinstance(found, Finding)
    assert found.prediction is not None
    assert found.prediction.ratio > 2
