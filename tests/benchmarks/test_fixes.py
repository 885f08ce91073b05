"""What `make fixes` makes of its pairs; the pairs themselves take real engines and minutes."""

import pytest

from benchmarks.fixes import FIXES, Pair, applied, inside, row, table
from phasetrace import advise, analyze
from phasetrace.model import Prediction
from phasetrace.read import read
from phasetrace.semconv import Cause
from tests.advise.recorded import FOLDER

CAP, BUDGET = FIXES[0], FIXES[-1]
PROMISED = Prediction("e2e_s", before=10.0, after=5.0, low=4.0, high=6.0, ratio=2.0)


def test_medians_are_compared() -> None:
    pairs = [Pair(Cause.LONG_OUTPUT, PROMISED, measured) for measured in (5.5, 20.0, 4.5)]
    assert inside(pairs)
    assert row(CAP, pairs)[2:6] == ("10.0 s", "5 s (4 s to 6 s)", "5.5 s", "yes")
    assert row(CAP, pairs)[-1] == "3/3"
    assert not inside([Pair(Cause.LONG_OUTPUT, PROMISED, 6.5)])


def test_what_neighbours_took_of_the_machine_is_allowed_for() -> None:
    slower = [Pair(Cause.LONG_OUTPUT, PROMISED, 10.0, starved=(0.0, 0.5))]
    assert not inside(slower)
    assert inside(slower, shared=True)
    rate = Prediction("throughput_tok_s", before=10.0, after=20.0, low=19.0, high=21.0, ratio=2.0)
    assert Pair(Cause.SMALL_BATCH, rate, 10.0, starved=(0.0, 0.5)).at_the_same_share == 20.0


def test_a_fault_that_was_not_found_has_no_gain() -> None:
    pairs = [Pair(Cause.LONG_OUTPUT, PROMISED, 5.0), Pair(Cause.UNKNOWN, None, 5.0)]
    assert not inside(pairs)
    assert row(CAP, pairs)[2:6] == ("-", "- (- to -)", "5 s", "no")
    assert row(CAP, pairs)[-2:] == ("NO", "1/2")
    assert len(list(table({CAP: pairs, BUDGET: []}))) == 2


def test_what_is_recommended_is_what_is_applied() -> None:
    recording = read(FOLDER / "small_prefill_chunk.json.gz")
    found = advise.diagnose(analyze.breakdown(recording), BUDGET.goal).findings
    assert applied(BUDGET, next(f for f in found if f.cause == BUDGET.cause)) == "--budget=2048"
    with pytest.raises(SystemExit, match="no command says"):
        applied(BUDGET, None)
