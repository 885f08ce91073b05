"""Golden texts at 80 columns, and what no text may ever hold."""

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest

from phasetrace.model import (
    Breakdown,
    Diagnosis,
    Finding,
    Goal,
    ModelFacts,
    NotEnoughData,
    Percentiles,
    Phase,
    Prediction,
    Process,
    Recording,
)
from phasetrace.render import json_report, markdown, text
from phasetrace.render.ink import cells

SGR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]x[/]\r\n\u202e<script>|`"


def test_a_diagnosis(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("diagnosis.txt", text.diagnosis(made.diagnosis()))


def test_in_ascii(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    said = text.diagnosis(made.diagnosis(), ascii=True)
    assert said.isascii()
    golden("diagnosis.ascii.txt", said)


def test_microseconds_in_ascii(made: ModuleType) -> None:
    short = Prediction("tpot_s", 5e-5, 2e-5, 1e-5, 3e-5, 2.5)
    brief = made.breakdown(
        phases=(made.phase(Phase.DECODE, 0.05, forward=0.05),),
        metrics={"itl_ns": Percentiles(5e4, 5e4, 5e4)},
    )
    d = made.diagnosis(breakdown=brief, findings=(made.finding(ns=50_000, prediction=short),) * 2)
    assert text.diagnosis(d, ascii=True).isascii()


def test_colour_adds_nothing_but_colour(made: ModuleType) -> None:
    plain, colored = text.diagnosis(made.diagnosis()), text.diagnosis(made.diagnosis(), color=True)
    bar = re.compile("[" + "".join("░▒▓█×≡·○") + "]")
    assert bar.sub("#", SGR.sub("", colored)) == bar.sub("#", plain)


def test_a_healthy_run(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    verdict = "Nothing to win 15 % with; decode runs at 94 % of what the device can do."
    well = replace(made.diagnosis(), cause="healthy", verdict=verdict, slo={"ttft_s": 0.5, "tpot_s": 0.05})
    golden("healthy.txt", text.diagnosis(well))


def test_a_trace_of_others_with_little_in_it(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    rules = (NotEnoughData("launch-bound", "record with phasetrace run: this needs step times"),)
    little = Diagnosis(
        cause="unknown",
        verdict="The trace holds requests without a single token time.",
        goal=Goal.E2E,
        breakdown=made.breakdown(
            recording=Recording(source="jaeger"), metrics={}, throughput_tok_s=None, unsplit=(), defects=()
        ),
        findings=(),
        not_enough=rules,
    )
    golden("unknown.txt", text.diagnosis(little))


def derived_in_one(made: ModuleType) -> Diagnosis:
    """Of two requests, one whose first token nobody saw, and both without a clock at their end."""
    one = made.request_breakdown()
    both = [
        replace(one, request=made.request(derived=frozenset(names)))
        for names in (("finished_ns",), ("first_token_ns", "finished_ns"))
    ]
    foreign = replace(made.breakdown().recording, source="jaeger")
    return replace(made.diagnosis(), breakdown=made.breakdown(recording=foreign, requests=tuple(both)))


def test_what_was_derived_is_told_from_what_was_observed(made: ModuleType) -> None:
    said = " ".join(text.diagnosis(derived_in_one(made)).split())
    assert (
        "derived from other numbers, not observed: prefill (1 of 2 requests), decode (1 of 2 requests),"
        " delivery" in said
    )
    assert "derived from other numbers" not in text.diagnosis(made.diagnosis())
    by_phase = {p["phase"]: p["derived"] for p in json_report.document(derived_in_one(made))["phases"]}
    assert by_phase == {"frontend": 0, "prefill": 1, "decode": 1, "delivery": 2, "unattributed": 0}
    assert "derived from other numbers" in markdown.diagnosis(derived_in_one(made))


def test_moments_of_our_own_steps_are_no_guesses(made: ModuleType) -> None:
    foreign = derived_in_one(made)
    ours = replace(foreign.breakdown, recording=replace(foreign.breakdown.recording, source="phasetrace"))
    assert "derived from other numbers" not in text.diagnosis(replace(foreign, breakdown=ours))


def test_nothing_diagnosed(made: ModuleType) -> None:
    empty = replace(made.diagnosis(), breakdown=Breakdown(Recording(), ()), findings=())
    assert "0 requests" in text.diagnosis(empty)


def test_the_summary_of_a_run(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("run_summary.txt", text.run_summary(made.diagnosis(), ["my trace.json"]))


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("ascii_", [False, True])
def test_lines_keep_to_the_width_and_end_without_spaces(made: ModuleType, width: int, ascii_: bool) -> None:
    lines = text.diagnosis(made.diagnosis(), width, ascii=ascii_).splitlines()
    assert all(line == line.rstrip() for line in lines)
    if width >= 80:
        assert max(map(cells, lines)) <= width


def test_code_to_change_stands_there_as_it_is(made: ModuleType) -> None:
    command = "model.generate(**inputs, max_new_tokens=40)" + "  # why" * 20
    said = text.diagnosis(made.diagnosis(findings=(made.finding(commands=(command,)),)))
    assert f"    {command}\n" in said


@pytest.mark.parametrize("render", [text.diagnosis, markdown.diagnosis])
def test_strings_of_a_trace_are_shown_and_never_obeyed(
    made: ModuleType, render: Callable[[Diagnosis], str]
) -> None:
    said = render(hostile(made))
    assert not re.search(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert r"\x1b]0;owned\x07" in said.replace("\\\\", "\\").replace("\\]", "]")


def test_markup_survives_as_text(made: ModuleType) -> None:
    assert "[bold red]x[/]" in text.diagnosis(hostile(made), color=True)


def test_markdown(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("diagnosis.md", markdown.diagnosis(made.diagnosis()))


def test_markdown_leaves_no_html_and_no_broken_table(made: ModuleType) -> None:
    said = markdown.diagnosis(hostile(made))
    prose = re.sub(r"(`{3,}).*?\n\1", "", said, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<script", prose)
    assert markdown.code("a```b").startswith("````\n")


def hostile(made: ModuleType) -> Diagnosis:
    """Every string that can come from outside tries to be more than a string."""
    process = Process("a" * 16, 1, 1, {HOSTILE: HOSTILE}, refused={HOSTILE: HOSTILE}, troubles=(HOSTILE,))
    process = replace(process, executable=None, engines={"transformers": HOSTILE})
    recording = made.recording(
        models={"m": ModelFacts("m", name=HOSTILE, device=HOSTILE)}, processes=(process,)
    )
    finding: Finding = made.finding(
        evidence=(HOSTILE,), recommendation=HOSTILE, commands=(HOSTILE,), tradeoff=HOSTILE
    )
    breakdown = made.breakdown(recording=recording, unsplit=(HOSTILE,))
    return replace(made.diagnosis(), verdict=HOSTILE, breakdown=breakdown, findings=(finding, finding))


def test_evidence_that_the_verdict_says_is_not_said_again(made: ModuleType) -> None:
    sentence = "decode owns 92 % of the time: 120 tokens a request, one after the other, 10.4 ms each"
    said = text.diagnosis(made.diagnosis(findings=(made.finding(evidence=(sentence, "and this")),)))
    assert said.count("one after the") == 1 and "- and this" in said


def test_a_percentile_that_nobody_knows_has_no_column(made: ModuleType) -> None:
    b = made.breakdown(metrics={"e2e_ns": Percentiles(1e9, float("nan"), float("nan"))})
    said = text.diagnosis(made.diagnosis(breakdown=b))
    assert "p50\n" in said and "p95" not in said and "?" not in said
