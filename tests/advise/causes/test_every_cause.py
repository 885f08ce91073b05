"""What holds for every rule, whatever it looks at."""

from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules

import pytest

from phasetrace.advise import causes
from phasetrace.advise.causes import RULES
from phasetrace.advise.evidence import gather
from phasetrace.advise.ranking import Candidate
from phasetrace.advise.rule import Rule
from phasetrace.analyze import breakdown
from phasetrace.model import NotEnoughData, Recording
from phasetrace.semconv import Cause
from tests.advise import scenes

ENGINES = {"vllm", "sglang", "tgi", "tensorrt-llm", "llama.cpp", "transformers", "other"}
IDS = [str(rule.cause) for rule in RULES]


def test_every_cause_has_one_rule() -> None:
    modules = {found.name.replace("_", "-") for found in iter_modules(causes.__path__)}
    assert modules == set(IDS) == {cause.value for cause in Cause} - {Cause.HEALTHY, Cause.UNKNOWN}
    assert len(RULES) == len(set(IDS))


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_a_cause_is_one_module_that_says_what_to_change_and_what_it_costs(rule: Rule) -> None:
    module = import_module(f"{causes.__name__}.{rule.cause.replace('-', '_')}")
    assert module.RULE is rule
    assert module.__doc__ and rule.in_table.__doc__ and (rule.in_steps is None or rule.in_steps.__doc__)
    assert rule.words.fix.endswith(".")
    assert rule.words.tradeoff.endswith(".") or rule.cause is Cause.DATA_DEFECT


@pytest.mark.parametrize("rule", RULES, ids=IDS)
def test_commands_are_for_engines_that_are_known(rule: Rule) -> None:
    assert set(rule.words.commands) <= ENGINES
    assert all(isinstance(said, tuple) and said for said in rule.words.commands.values())


@pytest.mark.parametrize("cause", [cause.value for cause in Cause])
def test_every_cause_has_a_page(cause: str) -> None:
    page = files("phasetrace.advise").joinpath("pages", f"{cause}.md").read_text(encoding="utf-8")
    assert page.startswith("# ")
    for title in ("How it looks in a trace", "What to change", "What it costs", "How to check"):
        assert f"## {title}" in page


SCENES = (
    Recording(),
    scenes.chat(),
    scenes.padding(),
    scenes.warm_up(),
    scenes.no_kv_cache(),
    scenes.small_batch(),
    scenes.stream_consumer(),
    scenes.logits(),
    scenes.collected(),
    scenes.long_output(),
    scenes.shifted(scenes.chat(), first_token_ns=None, last_token_ns=None),
    scenes.shifted(scenes.chat(), sequences=()),
    scenes.shifted(scenes.chat(), stream=None, first_step=None, last_step=None),
)


@pytest.mark.parametrize("rule", RULES, ids=IDS)
@pytest.mark.parametrize("recording", SCENES, ids=range(len(SCENES)))
def test_a_rule_answers_whatever_steps_it_is_given(rule: Rule, recording: Recording) -> None:
    answer = rule.on_steps(gather(breakdown(recording)))
    if isinstance(answer, NotEnoughData):
        assert answer.measure and answer.cause == rule.cause
    if isinstance(answer, Candidate):
        found = answer.finding
        assert found.cause == rule.cause and found.evidence and found.recommendation and found.commands
        assert found.confidence in ("high", "medium", "low")
        assert 0 <= found.share <= 1
