"""The frame of every rule: its words, and how what was seen becomes a finding."""

from dataclasses import replace

import pytest

from phasetrace.advise.ranking import Candidate, Tier
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.told import SIXTEEN_BITS, Gain, Told
from phasetrace.advise.table.view import View, view
from phasetrace.model import Goal, Group, NotEnoughData, Prediction, Table, TableHardware, TableModel
from phasetrace.semconv import Cause
from tests.advise import scenes
from tests.advise.asked import evidence

WORDS = Words("Pad less.", "Order changes.", {"vllm": ("--less",), "other": ("less=1",)})
HALF = Prediction("e2e_s", 2.0, 1.0, 1.0, 1.0, 2.0)
GROUPS = (Group(label="a", e2e_s=4.0, ttft_s=1.0), Group(label="b", e2e_s=2.0, ttft_s=1.0))


def in_steps(seen: Seen | Measure | None, engine: str = "vllm") -> Candidate | NotEnoughData | None:
    rule = Rule(Cause.PADDING, WORDS, lambda _: seen, lambda _: None)
    return rule.on_steps(evidence(scenes.chat(engine=engine)))


def in_table(told: Told | None, seen: View) -> Candidate | None:
    return Rule(Cause.PADDING, WORDS, None, lambda _: told).on_table(seen)


def looked_at(**told: object) -> View:
    return view(replace(Table(groups=GROUPS, goal=Goal.E2E, engine="vllm"), **told), None, None)


def test_a_finding_has_the_words_of_its_cause() -> None:
    found = in_steps(Seen(10.0, ("it is",)))
    assert isinstance(found, Candidate)
    finding = found.finding
    assert (finding.cause, finding.phase, finding.ns) == (Cause.PADDING, "prefill", 10)
    assert (finding.recommendation, finding.tradeoff, finding.commands) == (
        "Pad less.",
        "Order changes.",
        ("--less",),
    )
    assert 0 < finding.share < 1


def test_what_is_said_of_this_recording_comes_before_the_words_of_the_cause() -> None:
    found = in_steps(Seen(10.0, ("it is", None), fix="Pad to 8.", commands={"vllm": ("--to 8",)}))
    assert isinstance(found, Candidate)
    assert (found.finding.recommendation, found.finding.commands) == ("Pad to 8.", ("--to 8",))
    assert found.finding.tradeoff == "Order changes."
    assert found.finding.evidence == ("it is",)


@pytest.mark.parametrize(("engine", "typed"), [("vllm", "--less"), ("sglang", "less=1")])
def test_an_engine_that_is_not_named_has_the_command_for_any(engine: str, typed: str) -> None:
    found = in_steps(Seen(10.0, ("it is",)), engine)
    assert isinstance(found, Candidate)
    assert found.finding.commands == (typed,)


def test_the_weight_in_steps_is_what_the_fix_wins_or_all_for_a_defect() -> None:
    def weight(seen: Seen) -> float:
        found = in_steps(seen)
        assert isinstance(found, Candidate)
        return found.weight

    assert weight(Seen(10.0, ("it is",))) == 0
    assert weight(Seen(10.0, ("it is",), prediction=HALF)) == 0.5
    assert weight(Seen(0, ("it is",), tier=Tier.DEFECT)) == 1


def test_what_steps_do_not_tell_is_asked_for() -> None:
    assert in_steps(Measure("the steps")) == NotEnoughData(Cause.PADDING, "the steps")
    assert in_steps(None) is None
    assert Rule(Cause.PADDING, WORDS, None, lambda _: None).on_steps(evidence(scenes.chat())) is None


def test_a_table_is_told_of_in_its_own_numbers() -> None:
    found = in_table(Told(Tier.FAULT, ("it is",), gain=Gain(2.0, 1.5, 2.5)), looked_at())
    assert found is not None
    assert (found.tier, found.weight, found.finding.confidence) == (Tier.FAULT, 0.5, "medium")
    assert found.finding.prediction is not None and found.finding.prediction.after == 2.0
    assert found.finding.ns == 2_000_000_000 and found.finding.share == 0.5
    assert in_table(None, looked_at()) is None


def test_a_time_that_is_told_is_the_findings_own() -> None:
    found = in_table(Told(Tier.MEASURED, ("it is",), weight=0.9, seconds=1.0), looked_at())
    assert found is not None
    assert (found.finding.ns, found.finding.share, found.weight) == (1_000_000_000, 0.25, 0.9)
    assert found.finding.confidence == "high" and found.finding.prediction is None


def test_where_the_bytes_of_a_weight_are_assumed_nothing_is_certain() -> None:
    assumed = looked_at(model=TableModel(name="Llama-3.1-8B"), hardware=TableHardware(name="H100-SXM"))
    assert assumed.subject.assumed
    found = in_table(Told(Tier.BOUND, ("it is",), confidence="high"), assumed)
    assert found is not None
    assert found.finding.confidence == "medium" and found.finding.evidence == ("it is", SIXTEEN_BITS)
    measured = in_table(Told(Tier.MEASURED, ("it is",), confidence="high"), assumed)
    assert measured is not None and measured.finding.confidence == "high"
