"""What is said of the planted faults, by recordings that were made of them on a real vLLM."""

import pytest

from phasetrace import advise, analyze
from phasetrace.advise.gain import won
from phasetrace.advise.ranking import WORTH
from phasetrace.read import read
from tests.acceptance.planted import FAULTS, HEALTHY, Planted, first_of
from tests.advise.recorded import FOLDER

KEPT = {path.name.partition(".")[0] for path in FOLDER.glob("*.gz")}
ALL = {fault.name: fault for fault in (*FAULTS, *HEALTHY)}


CLEAR = 2.0  # times what a finding needs: engines on other machines are faster by less


@pytest.mark.parametrize("name", sorted(KEPT))
def test_what_is_wrong_is_named_first(name: str) -> None:
    fault, recording = ALL[name], read(FOLDER / f"{name}.json.gz")
    findings = advise.diagnose(analyze.breakdown(recording), fault.goal, fault.slo or None).findings
    first = findings[first_of([finding.cause for finding in findings])]
    assert first.cause in fault.causes, first.evidence
    assert fault.says in " ".join([first.recommendation, *first.evidence, *first.commands])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_clear_enough_for_other_machines(fault: Planted) -> None:
    recording = read(FOLDER / f"{fault.name}.json.gz")
    findings = advise.diagnose(analyze.breakdown(recording), fault.goal, fault.slo or None).findings
    first = next(finding for finding in findings if finding.cause in fault.causes)
    assert won(first.prediction) >= CLEAR * WORTH


@pytest.mark.parametrize("fault", HEALTHY, ids=lambda fault: fault.name)
def test_what_is_healthy_is_so_without_an_slo(fault: Planted) -> None:
    recording = read(FOLDER / f"{fault.name}.json.gz")
    assert advise.diagnose(analyze.breakdown(recording)).cause == "healthy"


def test_there_are_recordings() -> None:
    assert len(KEPT) >= 8
