"""Golden texts at 80 columns, what no text may ever hold, and JSON that keeps to its schema."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from types import ModuleType
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phasetrace.model import (
    Comparison,
    Difference,
    Fate,
    FindingChange,
    Matched,
    MetricChange,
    Mix,
    Part,
    PartChange,
    Phase,
    PhaseChange,
    Statistic,
    Word,
)
from phasetrace.render.comparison import json_report, markdown, text
from phasetrace.render.ink import cells

SGR = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]x[/]\r\n\u202e<script>|`"
SCHEMA = json.loads(files("phasetrace.render").joinpath("comparison.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
MS = 1e6

METRICS = (
    MetricChange("ttft_ns", Statistic.MEAN, 110 * MS, 112 * MS, 0.98, 0.91, 1.06, Word.SAME),
    MetricChange("ttft_ns", Statistic.P95, 120 * MS, 300 * MS, 0.4, 0.2, 0.9, Word.WORSE),
    MetricChange("itl_ns", Statistic.P95, 10.2 * MS, 8 * MS, 1.27, 0.7, 2.3, Word.FEW),
    MetricChange("e2e_ns", Statistic.MEAN, 1355 * MS, 511 * MS, 2.65, 2.4, 2.9, Word.BETTER),
    MetricChange("e2e_ns", Statistic.EQUAL_LENGTH, 1355 * MS, 1300 * MS, 1.04, 0.98, 1.3, Word.MACHINE),
    MetricChange("throughput_tok_s", Statistic.MEAN, 148.2, 149.0, 1.005, 0.9, 1.1, Word.UNLIKE),
    MetricChange("failed", Statistic.SHARE, 0.0, 0.12, 0.0, None, None, Word.WORSE),
)
PHASES = (
    PhaseChange(
        Phase.DECODE,
        1240 * MS,
        400 * MS,
        (PartChange(Part.FORWARD, 1060 * MS, 350 * MS), PartChange(Part.SAMPLING, 180 * MS, 50 * MS)),
    ),
    PhaseChange(Phase.PREFILL, 100 * MS, 101 * MS),
    PhaseChange(Phase.QUEUE, 15 * MS, 10 * MS),
)


def comparison(made: ModuleType, **changes: Any) -> Comparison:
    """Shorter answers, and little else."""
    long_output, pauses = made.diagnosis().findings
    given: dict[str, Any] = {
        "before": made.diagnosis(),
        "after": made.diagnosis(),
        "mix": Mix(
            Matched.CLASSES, (38, 35), (40, 40), (120.0, 250.0), (120.0, 46.0), (1.0, 16.0), load_ratio=3.2
        ),
        "metrics": METRICS,
        "runs_differ": 0.05,
        "phases": PHASES,
        "findings": (
            FindingChange("long-output", Fate.GONE, long_output, None, 0.52, 0.5, True),
            FindingChange("gc-pause", Fate.STAYED, pauses, pauses),
            FindingChange("preemption", Fate.CAME, None, replace(pauses, cause="preemption", phase="decode")),
        ),
        "knobs": (
            Difference("max_num_seqs", 16, 64),
            Difference("enable_prefix_caching", False, True),
            Difference("model_name", None, "an-organisation/a-very-long-name-of-a-model"),
        ),
        "measured": (Difference("concurrency", 1.04, 15.7),),
        "starved": (0.02, 0.31),
        "widened": True,
        "names": ("before.json", "after.json"),
    }
    return Comparison(**{**given, **changes})


def test_a_comparison(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("comparison.txt", text.comparison(comparison(made)))


def test_in_ascii(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    said = text.comparison(comparison(made), ascii=True)
    assert said.isascii()
    golden("comparison.ascii.txt", said)


def test_as_markdown(made: ModuleType, golden: Callable[[str, str], None]) -> None:
    golden("comparison.md", markdown.comparison(comparison(made)))


def test_colour_adds_nothing_but_colour(made: ModuleType) -> None:
    plain, colored = text.comparison(comparison(made)), text.comparison(comparison(made), color=True)
    bar = re.compile("[░▒▓█×≡·○]")
    assert colored != plain and bar.sub("#", SGR.sub("", colored)) == bar.sub("#", plain)


@pytest.mark.parametrize("word", Word)
def test_the_first_word_is_the_answer(made: ModuleType, word: Word) -> None:
    of_goal = replace(METRICS[3], word=word)
    said = text.comparison(comparison(made, metrics=(of_goal,)))
    assert said.startswith(f"{word}: e2e 1.35 s -> 511 ms, 2.6x (2.4-2.9).")


def test_without_the_goal_there_is_no_answer(made: ModuleType) -> None:
    said = text.comparison(comparison(made, metrics=METRICS[:2]))
    assert said.startswith("too few requests: the recordings do not both hold e2e.")


def test_shares_of_what_cancels_are_not_told(made: ModuleType) -> None:
    against = (PhaseChange(Phase.DECODE, 100 * MS, 60 * MS), PhaseChange(Phase.PREFILL, 100 * MS, 139 * MS))
    assert "share" not in text.comparison(comparison(made, phases=against))
    assert "share" in text.comparison(comparison(made, phases=against[:1]))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("ascii_", [False, True])
def test_lines_keep_to_the_width_and_end_without_spaces(made: ModuleType, width: int, ascii_: bool) -> None:
    for line in text.comparison(comparison(made), width, ascii=ascii_).splitlines():
        assert line == line.rstrip() and cells(line) <= width


def test_what_a_trace_says_is_never_obeyed(made: ModuleType) -> None:
    hostile = comparison(
        made,
        names=(HOSTILE, HOSTILE),
        knobs=(Difference(HOSTILE, HOSTILE, HOSTILE),),
        findings=(FindingChange(HOSTILE, Fate.GONE, made.finding(HOSTILE, phase=HOSTILE), None),),
    )
    said = text.comparison(hostile), markdown.comparison(hostile), json_report.comparison(hostile)
    for form in said:
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", form)
    assert "<script>" not in re.sub(r"\\<", "", said[1])


numbers = st.floats()
pairs = st.none() | st.tuples(numbers, numbers)
values = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | numbers | st.text()
metrics = st.builds(
    MetricChange,
    st.sampled_from(["ttft_ns", "tpot_ns", "itl_ns", "e2e_ns", "throughput_tok_s", "failed"]),
    st.sampled_from(Statistic),
    *[numbers] * 3,
    st.none() | numbers,
    st.none() | numbers,
    st.sampled_from(Word),
)
amounts = st.floats(0, 1e18)
parts = st.builds(PartChange, st.sampled_from(Part), amounts, amounts)
phases = st.builds(
    PhaseChange, st.sampled_from(Phase), amounts, amounts, st.lists(parts, max_size=3).map(tuple)
)
mixes = st.builds(
    Mix,
    st.sampled_from(Matched),
    st.just((1, 2)),
    st.just((3, 4)),
    pairs,
    pairs,
    pairs,
    st.booleans(),
    numbers,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mix=mixes,
    found=st.lists(metrics, max_size=4).map(tuple),
    split=st.lists(phases, max_size=3).map(tuple),
    differs=st.lists(st.builds(Difference, st.text(), values, values), max_size=3).map(tuple),
    starved=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_every_comparison_is_told_in_every_format(
    made: ModuleType, mix: Mix, found: Any, split: Any, differs: Any, starved: Any
) -> None:
    made_up = comparison(made, mix=mix, metrics=found, phases=split, knobs=differs, starved=starved)
    VALIDATOR.validate(json.loads(json_report.comparison(made_up)))
    assert text.comparison(made_up) and markdown.comparison(made_up)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == json_report.SCHEMA
