import click
import pytest

from phasetrace.cli.fail_on import FailOn, fails
from phasetrace.model import Breakdown, Diagnosis, Finding, Goal, Prediction, Recording


def finding(cause: str, ratio: float | None) -> Finding:
    prediction = None if ratio is None else Prediction("e2e_s", ratio, 1.0, 1.0, 1.0, ratio)
    return Finding(cause, "decode", 1, 0.5, "high", (), "", prediction=prediction)


def diagnosis(cause: str, *findings: Finding) -> Diagnosis:
    return Diagnosis(cause, "", Goal.E2E, Breakdown(Recording(), ()), findings)


PADDED = diagnosis("padding", finding("padding", 1.25), finding("gc-pause", None))
HEALTHY = diagnosis("healthy", finding("gc-pause", 1.05))


@pytest.mark.parametrize(
    ("given", "what", "fail"),
    [
        (PADDED, "any", True),
        (HEALTHY, "any", False),
        (diagnosis("unknown"), "any", False),
        (diagnosis("data-defect"), "any", True),
        (PADDED, "padding", True),
        (PADDED, "no-kv-cache,gc-pause", True),
        (PADDED, "no-kv-cache", False),
        (PADDED, "20%", True),
        (PADDED, "21%", False),
        (HEALTHY, "1%", True),
    ],
)
def test_what_fails(given: Diagnosis, what: str, fail: bool) -> None:
    assert fails(given, FailOn().convert(what, None, None)) is fail


@pytest.mark.parametrize("what", ["", "sometimes", "15", "x%", "nan%", "padding,"])
def test_what_is_none_of_these_is_named(what: str) -> None:
    with pytest.raises(click.BadParameter, match="--fail-on takes any"):
        FailOn().convert(what, None, None)
