"""The timeline of a call, told with a clock that the test holds in its hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace_agent.layout import PARTS
from phasetrace_transformers.timeline import Timeline


class Told:
    """A timeline whose clock moves ten at a hook, and what it wrote."""

    def __init__(self, beams: bool = False) -> None:
        self.time = 1000
        self.steps: list[dict[str, Any]] = []
        self.timeline = Timeline(self.time, self._write, beams=beams)

    def _write(
        self, index: int, begin: int, codes: Any, ends: Any, computed: int | None, tokens: int
    ) -> None:
        durations = [end - start for start, end in zip([begin, *ends], ends, strict=False)]
        parts = [(PARTS[code], ns) for code, ns in zip(codes, durations, strict=True)]
        self.steps.append({"index": index, "begin": begin, "end": ends[-1], "parts": parts, "tokens": tokens})
        self.steps[-1]["computed"] = computed

    def _hook(self) -> tuple[int, int]:
        """Ten pass outside of hooks, then one inside."""
        self.time += 11
        return self.time - 1, self.time

    def prepare(self, rows: int, positions: int, width: int) -> None:
        self.timeline.prepared(*self._hook(), rows, positions, width)

    def update(self) -> None:
        self.timeline.updated_kwargs(*self._hook())

    def logits(self, width: int) -> None:
        self.timeline.processed_logits(*self._hook(), width)

    def criteria(self, width: int) -> None:
        self.timeline.judged(*self._hook(), width)

    def stream(self) -> None:
        self.timeline.streamed_tokens(*self._hook())

    def draft(self, width: int) -> None:
        self.timeline.drafted(*self._hook(), width)

    def encode(self) -> None:
        self.timeline.encoded(*self._hook())

    def finish(self, completed: bool = True) -> None:
        self.time += 10
        self.timeline.finish(self.time, completed)

    def token(self, rows: int, positions: int, width: int) -> None:
        """One pass of the loop of `_sample`."""
        self.prepare(rows, positions, width)
        self.update()
        self.logits(width)
        self.criteria(width + 1)

    def column(self, name: str) -> list[Any]:
        return [step[name] for step in self.steps]


def test_a_greedy_call_is_one_step_a_token() -> None:
    told = Told()
    told.token(1, 5, 5)
    told.token(1, 1, 6)
    told.finish()
    assert told.steps[0]["parts"] == [
        ("setup", 10), ("prepare", 1), ("forward", 10), ("update", 1), ("logits", 11),
        ("sampling", 10), ("criteria", 1),
    ]  # fmt: skip
    assert told.steps[1]["parts"][0] == ("other", 10), "behind a token is the loop, and no hook"
    assert told.column("computed") == [5, None], "a decode step computes one position a row"
    assert told.column("tokens") == [1, 1]
    assert told.timeline.prompt_width == 5


def test_steps_are_laid_end_to_end() -> None:
    told = Told()
    told.encode()
    for width in range(5, 9):
        told.token(2, 5 if width == 5 else 1, width)
        told.stream()
    told.finish()
    assert told.steps[0]["begin"] == 1000
    assert told.column("begin")[1:] == told.column("end")[:-1]
    assert all(sum(ns for _, ns in s["parts"]) == s["end"] - s["begin"] for s in told.steps)


def test_the_encoder_interrupts_the_setup() -> None:
    told = Told()
    told.encode()
    told.token(1, 1, 1)
    assert told.steps[0]["parts"][:4] == [("setup", 10), ("encode", 1), ("setup", 10), ("prepare", 1)]


def test_a_streamer_before_the_criteria_is_part_of_its_step_and_after_them_of_the_next() -> None:
    old, new = Told(), Told()
    for told in (old, new):
        told.prepare(1, 5, 5)
        told.update()
        told.logits(5)
    old.stream()
    old.criteria(6)
    new.criteria(6)
    new.stream()
    new.token(1, 1, 6)
    assert ("stream", 1) in old.steps[0]["parts"]
    assert ("stream", 1) not in new.steps[0]["parts"]
    assert new.steps[1]["parts"][:3] == [("other", 10), ("stream", 1), ("other", 10)]


def test_the_streamer_after_the_last_token_is_told_apart() -> None:
    told = Told()
    told.token(1, 5, 5)
    told.stream()
    told.stream()
    told.finish()
    assert len(told.steps) == 1
    assert told.timeline.streamed == 2


def test_chunks_of_a_prompt_are_steps_without_a_token() -> None:
    told = Told()
    told.prepare(2, 10, 10)
    told.prepare(2, 10, 10)
    told.token(2, 4, 24)
    told.finish()
    assert told.column("tokens") == [0, 0, 1]
    assert told.column("computed") == [20, 20, 8]
    assert told.timeline.prompt_width == 24


def test_without_a_cache_every_step_computes_everything() -> None:
    told = Told()
    for width in (5, 6, 7):
        told.token(1, width, width)
    assert told.column("computed") == [5, 6, 7]


def test_speculation_yields_as_many_tokens_as_were_accepted() -> None:
    told = Told()
    width = 8
    for positions, accepted in ((11, 3), (4, 1), (4, 4)):
        told.draft(width)
        told.criteria(width + 3)  # 4.x asks whether the draft itself would stop
        told.prepare(1, positions, width + 3)
        told.update()
        width += accepted
        told.criteria(width)
    told.finish()
    assert told.column("tokens") == [3, 1, 4]
    assert told.column("computed") == [11, 4, 4]
    assert ("draft", 1) in told.steps[1]["parts"]


def test_a_forward_ends_at_whatever_comes_first() -> None:
    told = Told()
    told.draft(8)
    told.prepare(1, 9, 9)
    told.stream()
    told.update()
    told.criteria(9)
    parts = told.steps[0]["parts"]
    assert parts[parts.index(("stream", 1)) - 1] == ("forward", 10)
    assert parts[parts.index(("stream", 1)) + 1] == ("update", 11)
    assert told.timeline.inexact, "tokens were accepted before the streamer got them"


def test_processors_called_once_a_position_are_one_part() -> None:
    told = Told()
    told.prepare(1, 9, 9)
    for _ in range(4):
        told.logits(8)
    told.update()
    told.criteria(9)
    assert [ns for part, ns in told.steps[0]["parts"] if part == "logits"][0] == 1 + 3 * 11


def test_beam_search_that_ends_without_asking_the_criteria() -> None:
    told = Told(beams=True)
    told.token(6, 5, 5)
    told.prepare(6, 1, 6)
    told.update()
    told.logits(6)
    told.finish()
    assert told.column("tokens") == [1, 1]
    assert told.steps[1]["parts"][0] == ("update", 10), "beam search reorders its cache after a token"
    assert told.steps[1]["end"] == told.time


def test_a_failed_call_keeps_what_it_had_begun() -> None:
    told = Told()
    told.token(1, 5, 5)
    told.prepare(1, 1, 6)
    told.finish(completed=False)
    assert told.column("tokens") == [1, 0]
    assert told.steps[1]["end"] == told.time


def test_a_call_that_fails_at_once_is_setup() -> None:
    told = Told()
    told.finish(completed=False)
    assert told.steps[0]["parts"] == [("setup", 10)]


def test_a_call_that_passes_no_hook_has_no_steps() -> None:
    told = Told()
    told.finish()
    assert told.steps == []


def test_inputs_prepared_out_of_sight_leave_an_upper_bound() -> None:
    told = Told()
    told.update()
    told.logits(5)
    told.criteria(6)
    assert told.steps[0]["parts"][0] == ("forward", 10)
    assert told.timeline.inexact


def test_a_prefill_that_is_known_to_the_end_is_cut_there() -> None:
    told = Told()
    told.prepare(1, 5, 5)
    told.timeline.prefilled(told.time + 4)
    told.update()
    told.criteria(6)
    assert told.steps[0]["parts"][2:4] == [("forward", 4), ("update", 7)]
    assert not told.timeline.inexact


HOOKS = ("prepare", "update", "logits", "criteria", "stream", "draft", "encode")


@given(st.lists(st.sampled_from(HOOKS), max_size=40), st.booleans(), st.booleans())
def test_any_order_of_hooks_adds_up(hooks: list[str], beams: bool, completed: bool) -> None:
    told = Told(beams=beams)
    for width, hook in enumerate(hooks, start=5):
        if hook == "prepare":
            told.prepare(1, 1, width)
        elif hook in ("logits", "criteria", "draft"):
            getattr(told, hook)(width)
        else:
            getattr(told, hook)()
    told.finish(completed)
    at = 1000
    for index, step in enumerate(told.steps):
        assert (step["index"], step["begin"]) == (index, at)
        assert all(ns >= 0 for _, ns in step["parts"])
        at += sum(ns for _, ns in step["parts"])
        assert step["end"] == at
    assert at <= told.time
    if not completed:
        assert at == told.time or not told.steps


@pytest.mark.parametrize("width", [None, 3])
def test_ids_that_do_not_grow_yield_what_is_known(width: int | None) -> None:
    told = Told()
    told.prepare(1, 5, 5)
    told.update()
    told.timeline.judged(told.time + 1, told.time + 2, width)
    assert told.column("tokens") == [1 if width is None else 0]
