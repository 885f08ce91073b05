import click
import pytest

from phasetrace.cli.fail_on_worse import FailOnWorse, fails
from phasetrace.model import (
    Breakdown,
    Comparison,
    Diagnosis,
    Fate,
    FindingChange,
    Goal,
    Matched,
    MetricChange,
    Mix,
    Recording,
    Statistic,
    Word,
)


def change(
    metric: str, before: float, after: float, word: Word, statistic: Statistic = Statistic.MEAN
) -> MetricChange:
    ratio = after / before if metric == "throughput_tok_s" else before / after if after else float("inf")
    return MetricChange(metric, statistic, before, after, ratio, None, None, word)


def comparison(*metrics: MetricChange, goal: Goal = Goal.E2E, came: str = "preemption") -> Comparison:
    d = Diagnosis("healthy", "", goal, Breakdown(Recording(), ()), ())
    findings = (FindingChange(came, Fate.CAME, None, None), FindingChange("padding", Fate.GONE, None, None))
    return Comparison(d, d, Mix(Matched.PAIRS, (9, 9), (9, 9)), metrics, 0.05, findings=findings)


E2E = change("e2e_ns", 1.0, 1.1, Word.WORSE)
TTFT_BETTER = change("ttft_ns", 1.0, 0.5, Word.BETTER)
TAIL = change("itl_ns", 1.0, 2.0, Word.WORSE, Statistic.P95)
LONGER = change("e2e_ns", 1.0, 1.0, Word.SAME, Statistic.EQUAL_LENGTH)
SLOWER = change("throughput_tok_s", 100.0, 80.0, Word.WORSE)
FAILED = change("failed", 0.0, 0.3, Word.WORSE, Statistic.SHARE)


@pytest.mark.parametrize(
    ("given", "what", "fail"),
    [
        (comparison(E2E), "worse", True),
        (comparison(E2E), "worse=10%", True),
        (comparison(E2E), "worse=11%", False),
        (comparison(change("e2e_ns", 1.0, 9.0, Word.FEW)), "worse", False),
        (comparison(change("e2e_ns", 1.0, 9.0, Word.MACHINE)), "worse,any", False),
        (comparison(E2E, LONGER), "worse", False),
        (comparison(E2E, TTFT_BETTER, goal=Goal.TTFT), "worse", False),
        (comparison(E2E, TTFT_BETTER, goal=Goal.TTFT), "any", True),
        (comparison(TTFT_BETTER, TAIL), "itl=50%", True),
        (comparison(TTFT_BETTER, TAIL), "ttft, itl=200%", False),
        (comparison(SLOWER), "throughput=20%", True),
        (comparison(SLOWER), "throughput=21%", False),
        (comparison(TTFT_BETTER, FAILED), "ttft", True),
        (comparison(TTFT_BETTER), "preemption", True),
        (comparison(TTFT_BETTER), "padding", False),
    ],
)
def test_what_fails(given: Comparison, what: str, fail: bool) -> None:
    assert fails(given, FailOnWorse().convert(what, None, None)) is fail


@pytest.mark.parametrize(
    "what", ["", "sometimes", "15%", "worse=x%", "worse=nan%", "padding=3%", "worse,", "ttft="]
)
def test_what_is_none_of_these_is_named(what: str) -> None:
    with pytest.raises(click.BadParameter, match="--fail-on takes worse"):
        FailOnWorse().convert(what, None, None)
