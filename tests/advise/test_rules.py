"""What holds for every rule, whatever it looks at."""

import inspect
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules

import pytest

from phasetrace.advise import causes, rules
from phasetrace.advise.causes import RULES as CAUSES
from phasetrace.advise.evidence import gather
from phasetrace.advise.ranking import Candidate
from phasetrace.advise.rule import Rule
from phasetrace.advise.rules import RULES
from phasetrace.analyze import breakdown
from phasetrace.model import Finding, NotEnoughData, Recording
from phasetrace.semconv import Cause
from tests.advise import scenes

MODULES = [import_module(f"{rules.__name__}.{found.name}") for found in iter_modules(rules.__path__)]
NAMES = [rule.__name__.replace("_", "-") for rule in RULES]


def test_every_public_function_of_a_rules_module_is_a_rule() -> None:
    written = {
        function
        for module in MODULES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    assert written == set(RULES)
    assert len(set(NAMES)) == len(RULES)
    assert rules.__doc__


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_is_named_like_its_cause_and_documented(rule: rules.Rule) -> None:
    assert Cause(rule.__name__.replace("_", "-"))
    assert rule.__doc__


@pytest.mark.parametrize("rule", CAUSES, ids=lambda rule: rule.cause)
def test_a_cause_is_one_module_that_says_what_to_change_and_what_it_costs(rule: Rule) -> None:
    module = import_module(f"{causes.__name__}.{rule.cause.replace('-', '_')}")
    assert module.RULE is rule
    assert module.__doc__ and rule.in_table.__doc__ and (rule.in_steps is None or rule.in_steps.__doc__)
    assert rule.words.fix.endswith(".") and rule.words.tradeoff.endswith(".")


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


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
@pytest.mark.parametrize("recording", SCENES, ids=range(len(SCENES)))
def test_a_rule_answers_whatever_it_is_given(rule: rules.Rule, recording: Recording) -> None:
    answer = rule(gather(breakdown(recording)))
    assert answer is None or answer.cause == rule.__name__.replace("_", "-")
    if isinstance(answer, NotEnoughData):
        assert answer.measure
    if isinstance(answer, Finding):
        assert answer.evidence and answer.recommendation and answer.commands
        assert answer.confidence in ("high", "medium", "low")
        assert 0 <= answer.share <= 1


@pytest.mark.parametrize("rule", CAUSES, ids=lambda rule: rule.cause)
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
