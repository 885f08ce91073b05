"""What is said of real runs of `examples/faults/vllm/prefix_not_reused.py` on a real vLLM.

`off` and `off_again` are the same program twice, `on` is with `--caching`. Kept as `tests/advise/recorded`.
"""

from pathlib import Path

from phasetrace.model import Comparison, Fate, Goal, Matched, Word
from phasetrace.read import read
from tests.analyze.compare.runs import compared

FOLDER = Path(__file__).parent / "recorded"


def of(before: str, after: str) -> Comparison:
    one, other = (read(FOLDER / f"{name}.json.gz") for name in (before, after))
    return compared(one, other, Goal.TTFT)


def test_a_fix_is_better_by_what_was_predicted() -> None:
    c = of("off", "on")
    goal = c.of_goal()
    assert goal is not None and goal.word is Word.BETTER
    assert c.mix.matched is Matched.PAIRS and c.mix.compared == (16, 16)
    assert [(d.name, d.before, d.after) for d in c.knobs] == [("enable_prefix_caching", False, True)]
    assert (c.findings[0].cause, c.findings[0].fate) == ("prefix-not-reused", Fate.GONE)
    assert c.findings[0].inside is True
    assert c.phases[0].phase == "prefill" and c.phases[0].difference_ns < 0.9 * c.difference_ns


def test_the_same_program_again_is_no_better_and_no_worse() -> None:
    c = of("off", "off_again")
    assert {m.word for m in c.metrics} <= {Word.SAME, Word.FEW}
    assert c.knobs == () and c.findings[0].fate is Fate.STAYED and c.findings[0].inside is False
