"""What holds of every real run: phases sum to the request, and next to nothing is unexplained."""

from collections.abc import Callable

import pytest

from phasetrace.model import Part, Phase
from tests.acceptance.real import Run, Tour
from tests.acceptance.test_faults import FAULTS

pytestmark = pytest.mark.slow
LONG_NS = 100_000_000
UNATTRIBUTED = 0.01  # of a request longer than that
OTHER = 0.05  # of decode


@pytest.fixture(params=["tour", *FAULTS])
def run(request: pytest.FixtureRequest, tour: Tour, fault: Callable[[str], Run]) -> Run:
    return tour if request.param == "tour" else fault(request.param)


def test_phases_sum_to_the_request_exactly(run: Run) -> None:
    requests = [*run.breakdown.requests, *run.breakdown.warm_up]
    assert requests
    for each in requests:
        assert sum(phase.ns for phase in each.phases) == each.e2e_ns
        assert each.e2e_ns == (each.request.finished_ns or 0) - each.request.arrival_ns
        for phase in each.phases:
            assert phase.ns >= 0
            assert not phase.parts or sum(part.ns for part in phase.parts) == phase.ns


def test_next_to_nothing_is_unattributed(run: Run) -> None:
    shares = {
        each.request.id: each.phase_ns(Phase.UNATTRIBUTED) / each.e2e_ns
        for each in (*run.breakdown.requests, *run.breakdown.warm_up)
        if each.e2e_ns > LONG_NS
    }
    print(f"worst: {max(shares.values()):.4%} of {len(shares)} requests")
    assert {ident: share for ident, share in shares.items() if share > UNATTRIBUTED} == {}


def test_little_of_decode_is_other(run: Run) -> None:
    requests = [*run.breakdown.requests, *run.breakdown.warm_up]
    decode = sum(each.phase_ns(Phase.DECODE) for each in requests)
    other = sum(each.part_ns(Phase.DECODE, Part.OTHER) for each in requests)
    print(f"{other / decode:.2%} of {decode / 1e9:.1f} s")
    assert 0 < other <= OTHER * decode  # between a token and the next forward's preparation there is no hook
