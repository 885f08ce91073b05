"""`speculation-loss` in recorded steps: a good case, a bad one, and where too little is known."""

from dataclasses import replace

import numpy as np

from phasetrace.advise.causes import speculation_loss
from phasetrace.model import Finding, Goal, NotEnoughData, Part, Recording, StepCount
from phasetrace.model import Sequence as Row
from tests import builders
from tests.advise import scenes
from tests.advise.asked import ask, without_steps


def assisted(per_step: int, draft: float, tokens: int = 31) -> Recording:
    """Steps that draft for a share of their time and give `per_step` tokens each."""
    parts = {Part.FORWARD: 1 - draft, Part.DRAFT: draft}
    recording = scenes.chat(mode="assisted", tokens=tokens + 1, parts=parts)
    steps = recording.requests[0].last_step or 0
    yields = tuple(StepCount(k, per_step) for k in range(1, steps + 1))
    return scenes.shifted(recording, yields=yields, sequences=(Row(100, 0, 1 + per_step * steps, "length"),))


def test_speculation_loss() -> None:
    assert ask(speculation_loss, scenes.chat()) is None
    assert ask(speculation_loss, assisted(3, draft=0.5)) is None
    found = ask(speculation_loss, assisted(1, draft=0.5))
    assert isinstance(found, Finding)
    blind = without_steps(assisted(1, draft=0.5))
    assert isinstance(ask(speculation_loss, blind), NotEnoughData)


def test_drafts_that_are_wrong_in_shared_steps() -> None:
    def drafting(right: int) -> Recording:
        """Every other step verifies four drafts, takes twice as long, and gives `right` tokens more."""
        n = 60
        verifies = np.arange(n) % 2 == 1
        taken = builders.steps(
            n, ms=[20.0 if v else 10.0 for v in verifies], computed=[5 if v else 1 for v in verifies]
        )
        taken = replace(taken, new_tokens=np.where(verifies, 1 + right, 1))
        yields = tuple(StepCount(int(k), 1 + right) for k in np.flatnonzero(verifies) if right)
        asked = builders.request("r", steps=taken, engine="vllm", output=n + right * n // 2, yields=yields)
        process = builders.process(facts={"num_speculative_tokens": 4})
        return builders.recording(asked, steps=[taken], processes=(process,))

    found = ask(speculation_loss, drafting(0), goal=Goal.TPOT)
    assert isinstance(found, Finding)
    assert found.prediction is not None and found.prediction.ratio > 1.2
    assert ask(speculation_loss, drafting(3), goal=Goal.TPOT) is None
    assert ask(speculation_loss, scenes.chat(engine="vllm"), goal=Goal.TPOT) is None
