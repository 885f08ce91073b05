"""The steps of a scheduler as they are recorded: times end to end, columns only for what changed."""

from typing import Any

from phasetrace_agent import layout
from phasetrace_vllm.batches import Batches
from tests.integrations.vllm.fakes import Heard, outputs, ran, request, scheduled, scheduler


class Loop:
    """Drives `Batches` as vLLM's loop would, by a clock that the test sets."""

    def __init__(self, *names: str) -> None:
        self.heard = Heard()
        self.batches = Batches(self.heard)
        self.scheduler = scheduler(running=len(names))
        self.ids = {}
        for name in names:
            self.scheduler.requests[name] = request(name)
            self.ids[name] = self.batches.add(name).id

    def schedule(self, output: Any, begin: int, end: int) -> Any:
        self.batches.scheduling = begin
        self.batches.scheduled(self.scheduler, output, begin, end)
        return output

    def update(
        self,
        output: Any,
        begin: int,
        end: int,
        ended: tuple[Any, ...] = (),
        sampled: dict[str, int] | None = None,
        **tokens: int,
    ) -> None:
        """`tokens` are given out; `sampled` are as many, where not said."""
        told = {name: tokens.get(name, 0) for name in output.num_scheduled_tokens} | (sampled or {})
        done = ran(**told)
        self.batches.updating = True
        if output.scheduled_spec_decode_tokens:
            self.batches.speculated(done)
        for one in ended:
            self.batches.ended(one, begin)
        self.batches.updating = False
        self.batches.updated(self.scheduler, output, done, outputs(**tokens), begin, end)


def times(heard: Heard) -> list[tuple[int, dict[str, int]]]:
    """Of each step its begin and how long each part took."""
    found = []
    for _, _, begin, codes, ends, *_ in heard.of("step"):
        parts, at = {}, begin
        for code, end in zip(codes, ends, strict=True):
            parts[layout.PARTS[code]] = end - at
            at = end
        found.append((begin, parts))
    return found


def test_a_step_is_cut_at_schedule_and_update() -> None:
    loop = Loop("a")
    first = loop.schedule(scheduled(new=("a",), a=8), 100, 110)
    loop.update(first, 150, 155, a=1)
    second = loop.schedule(scheduled(a=1), 160, 165)
    loop.update(second, 185, 187, a=1)
    assert times(loop.heard) == [
        (100, {"schedule": 10, "forward": 40, "output": 5}),
        (155, {"other": 5, "schedule": 5, "forward": 20, "output": 2}),
    ]
    a = loop.ids["a"]
    assert loop.heard.batches == [([a], [], [(a, 8)], []), ([], [], [], [])]
    assert loop.heard.of("mark") == [(a, layout.SCHEDULED, 100)]


def test_the_step_after_an_idle_time_begins_with_its_own_schedule() -> None:
    loop = Loop("a")
    output = loop.schedule(scheduled(new=("a",), a=8), 100, 110)
    loop.scheduler.requests.clear()
    loop.update(output, 150, 155, a=1)
    loop.update(loop.schedule(scheduled(a=1), 900, 905), 950, 951, a=1)
    assert times(loop.heard)[1] == (900, {"schedule": 5, "forward": 45, "output": 1})


def test_scheduling_ahead_takes_no_time_and_steps_never_overlap() -> None:
    loop = Loop("a")
    first = loop.schedule(scheduled(new=("a",), a=8), 100, 110)
    second = loop.schedule(scheduled(a=1), 112, 120)
    loop.update(first, 150, 155, a=1)
    third = loop.schedule(scheduled(a=1), 156, 160)
    loop.update(second, 180, 184, a=1)
    loop.update(third, 210, 214, a=1)
    assert times(loop.heard) == [
        (100, {"schedule": 10, "forward": 40, "output": 5}),
        (155, {"forward": 25, "output": 4}),
        (184, {"forward": 26, "output": 4}),
    ]


def test_a_prompt_in_chunks_gives_its_token_with_the_last() -> None:
    loop = Loop("a")
    a = loop.ids["a"]
    loop.update(loop.schedule(scheduled(new=("a",), a=64), 0, 1), 10, 11)
    loop.update(loop.schedule(scheduled(a=9), 12, 13), 20, 21, a=1)
    assert loop.heard.batches == [([a], [], [(a, 64)], [(a, 0)]), ([], [], [(a, 9)], [])]


def test_speculation_is_seen_in_what_was_verified_and_what_was_given() -> None:
    loop = Loop("a")
    a = loop.ids["a"]
    loop.update(loop.schedule(scheduled(new=("a",), a=8), 0, 1), 10, 11, a=1)
    loop.update(loop.schedule(scheduled(a=4), 12, 13), 20, 21, a=3)
    assert loop.heard.batches[1] == ([], [], [(a, 4)], [(a, 3)])


def test_the_last_word_comes_after_the_step_that_ended_it() -> None:
    loop = Loop("a", "b")
    a, b = loop.ids["a"], loop.ids["b"]
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    ended = request("a", output=2, reason="STOP")
    loop.update(loop.schedule(scheduled(a=1, b=1), 12, 13), 20, 21, (ended,), a=1, b=1)
    loop.update(loop.schedule(scheduled(b=1), 22, 23), 30, 31, b=1)
    assert [batch[1] for batch in loop.heard.batches] == [[], [a], []]
    verbs = [said[0] for said in loop.heard.said]
    assert verbs.index("finished") > [i for i, verb in enumerate(verbs) if verb == "step"][1]
    ((ident, time, data),) = loop.heard.of("finished")
    assert (ident, time, data["reason"], data["last_step"]) == (a, 21, "stop", 1)
    assert data["sequences"] == [{"prompt": 8, "padding": 0, "output": 2, "reason": "stop"}]
    assert b not in loop.heard.batches[2][1]


def test_preempted_it_leaves_and_joins_again() -> None:
    loop = Loop("a", "b")
    a, b = loop.ids["a"], loop.ids["b"]
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    loop.batches.scheduling = 12
    loop.batches.preempted("b", 13)
    loop.update(loop.schedule(scheduled(a=1), 12, 14), 20, 21, a=1)
    loop.update(loop.schedule(scheduled(a=1), 22, 23), 30, 31, a=1)
    loop.update(loop.schedule(scheduled(resumed=("b",), a=1, b=9), 32, 33), 40, 41, a=1, b=1)
    assert loop.heard.batches[1:] == [
        ([], [b], [(b, 0)], [(b, 0)]),
        ([], [], [], []),
        ([b], [], [(b, 9)], []),
    ]
    assert loop.heard.of("mark") == [
        (a, layout.SCHEDULED, 0),
        (b, layout.SCHEDULED, 0),
        (b, layout.PREEMPTED, 12),
        (b, layout.RESUMED, 32),
    ]


def test_resumed_as_new_is_still_resumed() -> None:
    """The newer model runner hands resumed requests out as new ones."""
    loop = Loop("a")
    loop.update(loop.schedule(scheduled(new=("a",), a=8), 0, 1), 10, 11, a=1)
    loop.batches.preempted("a", 12)
    loop.update(loop.schedule(scheduled(new=("a",), a=9), 20, 21), 30, 31, a=1)
    assert [mark[1] for mark in loop.heard.of("mark")] == [
        layout.SCHEDULED,
        layout.PREEMPTED,
        layout.RESUMED,
    ]


def test_aborted_between_steps() -> None:
    loop = Loop("a", "b")
    a, b = loop.ids["a"], loop.ids["b"]
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    loop.batches.ended(request("b", output=1, reason="ABORT"), 12)
    ((ident, time, data),) = loop.heard.of("finished")
    assert (ident, time, data["reason"], data["last_step"]) == (b, 12, "abort", 0)
    loop.update(loop.schedule(scheduled(a=1), 13, 14), 20, 21, a=1)
    loop.update(loop.schedule(scheduled(a=1), 22, 23), 30, 31, a=1)
    assert loop.heard.batches[1:] == [([], [b], [(b, 0)], [(b, 0)]), ([], [], [], [])]
    assert a not in loop.heard.batches[1][1]


def test_aborted_while_it_runs_its_token_is_discarded() -> None:
    loop = Loop("a", "b")
    b = loop.ids["b"]
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    running = loop.schedule(scheduled(a=1, b=1), 12, 13)
    loop.batches.ended(request("b", output=1, reason="ABORT"), 14)
    loop.update(running, 20, 21, a=1)
    assert loop.heard.batches[1] == ([], [b], [], [(b, 0)])


def test_ended_with_a_step_scheduled_ahead_its_work_is_counted_and_discarded() -> None:
    loop = Loop("a", "b")
    a = loop.ids["a"]
    first = loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1)
    ahead = loop.schedule(scheduled(a=1, b=1), 2, 3)
    loop.update(first, 10, 11, (request("a", output=1),), a=1, b=1)
    loop.update(ahead, 20, 21, b=1)
    loop.update(loop.schedule(scheduled(b=1), 22, 23), 30, 31, b=1)
    joined, left, computed, yielded = loop.heard.batches[1]
    assert (joined, left, computed, yielded) == ([a], [a], [], [(a, 0)])
    assert loop.heard.batches[2] == ([], [], [], [])


def test_steps_ahead_of_an_abort_do_not_overlap() -> None:
    loop = Loop("a")
    first = loop.schedule(scheduled(new=("a",), a=8), 100, 110)
    second = loop.schedule(scheduled(a=1), 112, 120)
    loop.scheduler.requests.clear()
    loop.batches.ended(request("a", reason="ABORT"), 140)
    loop.update(first, 150, 155, sampled={"a": 1})
    loop.update(second, 180, 184, sampled={"a": 1})
    assert times(loop.heard) == [
        (100, {"schedule": 10, "forward": 40, "output": 5}),
        (155, {"forward": 25, "output": 4}),
    ]


def test_who_has_ended_is_forgotten_while_steps_are_scheduled_ahead_without_end() -> None:
    names = [f"r{row}" for row in range(20)]
    loop = Loop("stays", *names)
    ahead = loop.schedule(scheduled(new=("stays", *names), stays=8, **dict.fromkeys(names, 8)), 0, 1)
    for row, name in enumerate(names):
        output, left = ahead, dict.fromkeys(names[row:], 1)
        ahead = loop.schedule(scheduled(stays=1, **left), 10 * row + 2, 10 * row + 3)
        given = {each: 1 for each in output.num_scheduled_tokens if each in loop.batches.requests}
        loop.update(output, 10 * row + 8, 10 * row + 9, (request(name),), **given)
        assert len(loop.batches.members.late) <= 2
    assert len(loop.heard.of("finished")) == len(names)


def test_running_and_not_scheduled_it_computes_nothing() -> None:
    """As a request near its end with asynchronous scheduling, or beyond the budget of a step."""
    loop = Loop("a", "b")
    b = loop.ids["b"]
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    loop.update(loop.schedule(scheduled(a=1), 12, 13), 20, 21, a=1)
    loop.update(loop.schedule(scheduled(a=1, b=1), 22, 23), 30, 31, a=1, b=1)
    assert loop.heard.batches[1:] == [([], [], [(b, 0)], [(b, 0)]), ([], [], [], [])]


def test_a_step_whose_execution_failed_is_dropped() -> None:
    loop = Loop("a")
    loop.schedule(scheduled(new=("a",), a=8), 0, 1)
    loop.update(loop.schedule(scheduled(a=1), 2, 3), 10, 11, a=1)
    assert [step[1] for step in loop.heard.of("step")] == [0]
    assert not loop.batches._pending


def test_an_empty_step_is_no_step() -> None:
    loop = Loop("a")
    loop.update(loop.schedule(scheduled(), 0, 1), 2, 3)
    assert loop.heard.of("step") == []


def test_pooling_requests_are_left_alone() -> None:
    loop = Loop()
    loop.update(loop.schedule(scheduled(new=("p",), p=8), 0, 1), 10, 11)
    assert loop.heard.of("step") == []
    assert loop.heard.of("mark") == []


def test_queues_and_blocks_are_said_when_they_change() -> None:
    loop = Loop("a")
    for begin in (0, 20, 40):
        loop.update(loop.schedule(scheduled(new=("a",) if not begin else (), a=1), begin, begin + 1),
                    begin + 10, begin + 11, a=1)  # fmt: skip
    assert loop.heard.of("batch_state") == [(loop.batches.stream, 0, 0, 1, 0, 10, 100, 0, 0)]
    loop.scheduler.waiting.append(request("b"))
    loop.scheduler.requests["b"] = loop.scheduler.waiting[0]
    loop.update(loop.schedule(scheduled(a=1), 60, 61), 70, 71, a=1)
    kv = layout.HEAD_REASON_CODE["kv"]
    assert loop.heard.of("batch_state")[1] == (loop.batches.stream, 3, 60, 1, 1, 10, 100, kv, 0)


def test_grammar_masks_are_logits_time() -> None:
    loop = Loop("a")
    output = loop.schedule(scheduled(new=("a",), a=8), 0, 10)
    loop.batches.masked(30, 37)
    loop.update(output, 50, 52, a=1)
    _, _, begin, codes, ends, *_ = loop.heard.of("step")[0]
    assert [layout.PARTS[code] for code in codes] == ["schedule", "forward", "logits", "forward", "output"]
    assert (begin, ends) == (0, (10, 30, 37, 50, 52))


def test_what_was_sampled_past_the_end_is_discarded_and_told_late() -> None:
    loop = Loop("a")
    a = loop.ids["a"]
    first = loop.schedule(scheduled(new=("a",), a=8), 0, 1)
    ahead = loop.schedule(scheduled(a=1), 2, 3)
    loop.update(first, 10, 11, (request("a", output=1),), a=1)
    loop.update(ahead, 20, 21, sampled={"a": 1})
    assert loop.heard.of("step_tokens") == [(loop.batches.stream, 1, 0, 0, 1)]
    assert "discarded" not in loop.heard.of("finished")[0][2]
    assert loop.heard.of("detail") == [(a, {"discarded": {layout.PAST_END: 1}})]


def test_what_was_sampled_for_an_aborted_request_is_discarded() -> None:
    loop = Loop("a", "b")
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    running = loop.schedule(scheduled(a=1, b=1), 12, 13)
    loop.batches.ended(request("b", output=1, reason="ABORT"), 14)
    loop.update(running, 20, 21, sampled={"b": 1}, a=1)
    assert loop.heard.of("detail") == [(loop.ids["b"], {"discarded": {layout.ABORTED: 1}})]


def test_what_was_sampled_before_a_preemption_is_discarded() -> None:
    loop = Loop("a")
    loop.update(loop.schedule(scheduled(new=("a",), a=8), 0, 1), 10, 11, a=1)
    running = loop.schedule(scheduled(a=1), 12, 13)
    loop.batches.preempted("a", 14)
    loop.update(running, 20, 21, sampled={"a": 1})
    loop.update(loop.schedule(scheduled(resumed=("a",), a=9), 22, 23), 30, 31, (request("a", output=2),), a=1)
    assert loop.heard.of("detail") == [(loop.ids["a"], {"discarded": {layout.PREEMPTED_MEANWHILE: 1}})]


def test_speculation_is_counted_by_what_was_sampled_before_it_was_cut() -> None:
    loop = Loop("a")
    loop.update(loop.schedule(scheduled(new=("a",), a=8), 0, 1), 10, 11, a=1)
    verified = loop.schedule(scheduled(a=4), 12, 13)
    loop.update(verified, 20, 21, (request("a", output=3),), sampled={"a": 4}, a=2)
    assert loop.heard.of("step_tokens") == [(loop.batches.stream, 1, 3, 3, 2)]
    assert loop.heard.of("detail") == [(loop.ids["a"], {"discarded": {layout.PAST_END: 2}})]


def test_preempted_requests_are_said_with_the_queue() -> None:
    loop = Loop("a", "b")
    loop.update(loop.schedule(scheduled(new=("a", "b"), a=8, b=8), 0, 1), 10, 11, a=1, b=1)
    loop.batches.preempted("b", 12)
    for begin in (12, 22):
        loop.update(loop.schedule(scheduled(a=1), begin, begin + 1), begin + 5, begin + 6, a=1)
    assert [state[-1] for state in loop.heard.of("batch_state")] == [0, 1, 0]


def test_resumed_with_the_next_step_it_joins_again() -> None:
    loop = Loop("a")
    a = loop.ids["a"]
    loop.update(loop.schedule(scheduled(new=("a",), a=8), 0, 1), 10, 11, a=1)
    loop.batches.preempted("a", 12)
    loop.update(loop.schedule(scheduled(resumed=("a",), a=9), 13, 14), 20, 21, a=1)
    assert loop.heard.batches[1] == ([a], [], [(a, 9)], [])
