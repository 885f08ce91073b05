import click
import pytest

from phasetrace.cli.slo import NAMED, Slo


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("chat", NAMED["chat"]),
        ("ttft=0.5,tpot=0.05", {"ttft": 0.5, "tpot": 0.05}),
        ("voice, e2e=10", {**NAMED["voice"], "e2e": 10.0}),
        ("chat,ttft=1", {**NAMED["chat"], "ttft": 1.0}),
    ],
)
def test_targets(text: str, limits: dict[str, float]) -> None:
    assert Slo().convert(text, None, None) == limits


@pytest.mark.parametrize(
    "text", ["", "fast", "ttft", "ttft=", "ttft=0", "ttft=-1", "ttft=nan", "ttft=inf", "qps=3"]
)
def test_what_is_no_target_is_named(text: str) -> None:
    with pytest.raises(click.BadParameter, match="--slo takes chat, voice or"):
        Slo().convert(text, None, None)
