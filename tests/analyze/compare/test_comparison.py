"""What a comparison says: whether it helped, where, and whether the requests or the system changed."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from phasetrace.analyze.compare import comparison
from phasetrace.analyze.compare.findings import finding_changes
from phasetrace.analyze.compare.metrics import Noise
from phasetrace.model import (
    Comparison,
    Fate,
    Goal,
    Matched,
    MetricChange,
    Recording,
    RequestStatus,
    Statistic,
    Word,
)
from phasetrace.model import Sequence as Row
from tests.advise.server import load, serve
from tests.analyze.compare.runs import compared, diagnosed, run

VARIED = [16, 40, 64, 90, 128]
OTHERS = [15, 42, 60, 95, 120]


def metric(c: Comparison, name: str, statistic: Statistic = Statistic.MEAN) -> MetricChange:
    (found,) = [m for m in c.metrics if m.metric == name and m.statistic is statistic]
    return found


def words(c: Comparison) -> dict[str, Word]:
    return {m.metric: m.word for m in c.metrics if m.statistic is Statistic.MEAN}


def test_a_faster_prefill_is_better_where_it_counts() -> None:
    c = compared(run(prefill_ms=200), run(prefill_ms=50, seed=1))
    assert words(c) == {
        "ttft_ns": Word.BETTER,
        "tpot_ns": Word.SAME,
        "e2e_ns": Word.BETTER,
        "throughput_tok_s": Word.BETTER,
    }
    ttft = metric(c, "ttft_ns")
    assert ttft.low is not None and ttft.high is not None
    assert ttft.low < 4 < ttft.high and ttft.ratio == pytest.approx(4, rel=0.05)
    assert c.phases[0].phase == "prefill" and c.phases[0].difference_ns == pytest.approx(-150e6, rel=0.05)


def test_what_was_better_is_worse_the_other_way_round() -> None:
    one, other = run(step_ms=10), run(step_ms=14, seed=1)
    assert metric(compared(one, other), "tpot_ns").word is Word.WORSE
    assert metric(compared(other, one), "tpot_ns").word is Word.BETTER


def test_the_same_program_again_shows_no_difference() -> None:
    assert set(words(compared(run(), run(seed=1))).values()) == {Word.SAME}


def test_noise_is_taken_for_a_difference_as_rarely_as_an_interval_says() -> None:
    again = [compared(run(noise=0.4, seed=2 * n), run(noise=0.4, seed=2 * n + 1)) for n in range(25)]
    told = [word for c in again for word in words(c).values()]
    assert sum(word not in (Word.SAME, Word.FEW) for word in told) <= 0.05 * len(told)


def test_two_runs_may_differ_by_so_much_with_nothing_changed() -> None:
    assert set(words(compared(run(noise=0), run(noise=0, prefill_ms=104, step_ms=10.4))).values()) == {
        Word.SAME
    }


def test_a_request_or_two_tell_nothing() -> None:
    c = compared(run(2), run(2, prefill_ms=10))
    assert set(words(c).values()) == {Word.FEW}
    assert metric(c, "ttft_ns").low is None


def test_noise_that_would_hide_what_matters_is_not_called_no_difference() -> None:
    c = compared(run(6, noise=0.8), run(6, noise=0.8, seed=3))
    ttft = metric(c, "ttft_ns")
    assert ttft.word is Word.FEW and ttft.enough is not None and ttft.enough >= 100


def test_as_many_requests_as_it_says_are_enough() -> None:
    few = metric(compared(run(16, noise=0.4), run(16, noise=0.4, seed=1)), "ttft_ns")
    assert few.enough is not None and few.word is Word.FEW
    enough = compared(run(few.enough, noise=0.4), run(few.enough, noise=0.4, seed=1))
    assert metric(enough, "ttft_ns").word is Word.SAME


def test_the_same_prompts_are_compared_in_pairs() -> None:
    """Lengths that vary by a factor of eight hide a tenth, unless each prompt stands beside itself."""
    before = run(prompts=VARIED, per_token_ms=4)
    after = run(prompts=VARIED, per_token_ms=3.4, seed=1)
    c = compared(before, after)
    assert c.mix.matched is Matched.PAIRS and c.mix.compared == (24, 24)
    assert metric(c, "ttft_ns").word is Word.BETTER


def test_pairs_are_found_whatever_the_order_and_without_what_failed() -> None:
    c = compared(run(25, prompts=VARIED), run(25, prompts=VARIED[::-1], failed=1, seed=1))
    assert c.mix.matched is Matched.PAIRS and c.mix.compared == (24, 24)
    assert words(c)["ttft_ns"] is Word.SAME


def test_the_same_prompts_in_other_requests_are_alike() -> None:
    def batches(prompts: list[int], rows: int, **fields: Any) -> Recording:
        """Each batch takes as long as its longest prompt."""
        chunks = [prompts[at : at + rows] for at in range(0, len(prompts), rows)]
        made = run(
            len(chunks), prompts=[max(chunk) for chunk in chunks], prefill_ms=0, per_token_ms=5, **fields
        )
        requests = [
            replace(r, sequences=tuple(Row(prompt_tokens=n, output_tokens=9) for n in chunk))
            for r, chunk in zip(made.requests, chunks, strict=True)
        ]
        return replace(made, requests=tuple(requests))

    mixed = [10, 90] * 24
    in_order = compared(batches(mixed, 4), batches(sorted(mixed), 4, seed=1), Goal.THROUGHPUT)
    assert in_order.mix.matched is Matched.PROMPTS and in_order.mix.compared == (12, 12)
    assert metric(in_order, "throughput_tok_s").ratio > 1.5 and Word.UNLIKE not in words(in_order).values()
    few = compared(batches([10, 90, 10, 10] * 2, 4), batches([90, 90, *[10] * 6], 4, seed=1), Goal.THROUGHPUT)
    assert words(few)["throughput_tok_s"] is Word.BETTER  # all of the prompts were asked: none was drawn
    assert words(few)["e2e_ns"] is Word.FEW
    larger = compared(batches(mixed, 2), batches(mixed, 8, seed=1))
    assert larger.mix.prompts == (2, 8)
    assert words(larger)["e2e_ns"] is Word.UNLIKE and words(larger)["throughput_tok_s"] is Word.BETTER


def test_other_prompts_are_compared_by_class_of_length() -> None:
    c = compared(run(30, prompts=VARIED), run(30, prompts=OTHERS, seed=1))
    assert c.mix.matched is Matched.CLASSES
    assert words(c)["ttft_ns"] is Word.SAME


def test_more_of_the_long_prompts_are_no_slower_system() -> None:
    short, long = [20] * 8 + [200] * 2, [20] * 2 + [200] * 8
    c = compared(run(40, prompts=short, per_token_ms=2), run(40, prompts=long, per_token_ms=2, seed=1))
    assert c.mix.matched is Matched.CLASSES
    assert words(c)["ttft_ns"] is Word.SAME and metric(c, "ttft_ns").ratio == pytest.approx(1, rel=0.05)
    assert words(c)["throughput_tok_s"] is Word.UNLIKE
    assert c.mix.prompt_tokens == (56, 164)


def test_nothing_is_said_of_prompts_that_have_no_like() -> None:
    c = compared(run(prompts=10), run(prompts=1000, prefill_ms=900, seed=1))
    assert c.mix.compared == (0, 0)
    assert set(words(c).values()) == {Word.UNLIKE}


def test_longer_answers_are_no_slower_system() -> None:
    c = compared(run(answers=10), run(answers=21, seed=1))
    assert words(c)["e2e_ns"] is Word.WORSE
    assert metric(c, "e2e_ns", Statistic.EQUAL_LENGTH).word is Word.SAME
    assert metric(c, "throughput_tok_s", Statistic.EQUAL_LENGTH).word is Word.SAME
    goal = c.of_goal()
    assert goal is not None and goal.word is Word.SAME


def test_shorter_answers_that_were_asked_for_are_the_change() -> None:
    c = compared(
        run(answers=40, settings={"max_new_tokens": 40}),
        run(answers=10, settings={"max_new_tokens": 10}, seed=1),
    )
    goal = c.of_goal()
    assert c.mix.cap_changed and goal is not None
    assert (goal.statistic, goal.word) == (Statistic.MEAN, Word.BETTER)


def test_answers_of_one_token_are_made_longer_at_the_pace_of_the_others() -> None:
    c = compared(run(answers=21), run(answers=[1, 1, 11], seed=1))
    for name in ("e2e_ns", "throughput_tok_s"):
        assert metric(c, name, Statistic.EQUAL_LENGTH).ratio == pytest.approx(1, rel=0.05)


def test_answers_that_show_no_pace_are_not_made_longer() -> None:
    c = compared(run(answers=21), run(answers=1, seed=1))
    assert Statistic.EQUAL_LENGTH not in {m.statistic for m in c.metrics}
    assert (words(c)["e2e_ns"], words(c)["throughput_tok_s"]) == (Word.UNLIKE, Word.UNLIKE)


@pytest.mark.parametrize("values", [(0.0, 1e9), (1e9, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("name", ["ttft_ns", "throughput_tok_s"])
def test_nothing_has_a_ratio_to_nothing(name: str, values: tuple[float, float]) -> None:
    noise = Noise((np.arange(9), np.arange(9)), paired=True)
    assert not list(noise.change(name, Statistic.P50, values, (0.9, 1.1)))


def test_what_only_one_run_diagnosed_makes_no_pair_unlike() -> None:
    lengths = [3000, *[10] * 23]
    fewer = run(prompts=lengths, answers=[200, *[9] * 23], seed=1)
    failed = replace(fewer.requests[0], status=RequestStatus.FAILED)
    c = compared(
        run(prompts=lengths, answers=[200, *[9] * 23]), replace(fewer, requests=(failed, *fewer.requests[1:]))
    )
    assert c.mix.matched is Matched.PAIRS and c.mix.requests == (24, 23)
    assert set(words(c).values()) == {Word.SAME}
    assert Statistic.EQUAL_LENGTH not in {m.statistic for m in c.metrics}


def test_a_prompt_of_unknown_length_is_like_any() -> None:
    c = compared(run(sequences=()), run(sequences=(), seed=1))
    assert c.mix.matched is Matched.ALL and c.mix.prompt_tokens is None
    assert words(c)["ttft_ns"] is Word.SAME


def test_more_load_is_told_from_a_slower_system() -> None:
    calm, busy = serve(load(40, every_ms=400)), serve(load(40, every_ms=40))
    assert compared(calm, busy).mix.load_ratio == pytest.approx(10, rel=0.05)
    assert compared(busy, calm).mix.load_ratio == pytest.approx(0.1, rel=0.05)
    slower = serve(load(40, every_ms=400), fixed_ms=30)
    assert compared(calm, slower).mix.load_ratio is None
    assert compared(run(), run(prefill_ms=10, step_ms=1)).mix.load_ratio is None  # asked again as it answers


def test_the_tails_of_enough_requests_are_told() -> None:
    c = compared(run(60), run(60, step_ms=20, prefill_ms=300, seed=1))
    assert metric(c, "itl_ns", Statistic.P95).word is Word.WORSE
    assert metric(c, "ttft_ns", Statistic.P95).ratio == pytest.approx(1 / 3, rel=0.1)
    assert metric(c, "ttft_ns", Statistic.P50).ratio == pytest.approx(1 / 3, rel=0.1)
    assert not [
        m for m in compared(run(20), run(20)).metrics if m.metric == "ttft_ns" and m.statistic == "p95"
    ]


def test_what_was_set_differently_is_named() -> None:
    c = compared(run(knobs={"max_num_seqs": 16, "role": "a"}), run(knobs={"max_num_seqs": 64, "role": "b"}))
    assert [(d.name, d.before, d.after) for d in c.knobs] == [("max_num_seqs", 16, 64)]
    more = compared(run(), run(settings={"do_sample": True}, mode="sample"))
    assert {d.name: (d.before, d.after) for d in more.knobs} == {
        "mode": ("greedy", "sample"),
        "do_sample": (None, True),
    }


def test_more_failures_than_chance_are_worse() -> None:
    c = compared(run(40), run(40, failed=12, seed=1))
    failed = metric(c, "failed", Statistic.SHARE)
    assert failed.word is Word.WORSE and failed.after == pytest.approx(0.3)
    assert metric(compared(run(40), run(40, failed=1)), "failed", Statistic.SHARE).word is Word.SAME
    assert not [m for m in compared(run(), run()).metrics if m.metric == "failed"]


def test_a_finding_that_went_is_held_against_its_prediction() -> None:
    cap = {"answers": 200, "settings": {"max_new_tokens": 200}}
    before, after = run(**cap, knobs={}), run(answers=20, settings={"max_new_tokens": 20}, seed=1)
    c = compared(before, after)
    gone = [f for f in c.findings if f.before is not None]
    assert gone and all(f.fate in (Fate.GONE, Fate.STAYED) for f in gone)
    held = [f for f in c.findings if f.measured is not None]
    assert len(held) == 1 and held[0].before is not None and held[0].before.prediction is not None
    promised = held[0].before.prediction
    assert held[0].inside is (promised.low <= held[0].measured <= promised.high)  # type: ignore[operator]


def test_a_prediction_is_held_against_what_as_much_of_the_machine_would_give() -> None:
    before = diagnosed(run(answers=200, settings={"max_new_tokens": 200}))
    promised = before.findings[0].prediction
    assert promised is not None and promised.metric == "e2e_s"
    for measured, machine, inside in (
        (promised.after, 1.0, True),
        (promised.low / 2, 1.0, False),
        (promised.low / 2, 0.4, True),  # with less of the machine it would have taken longer
        (promised.high * 2, 0.4, False),
    ):
        of_goal = MetricChange("e2e_ns", Statistic.MEAN, 1.0, measured * 1e9, 1.0, None, None, Word.BETTER)
        (held, *_) = finding_changes(before, diagnosed(run()), of_goal, machine)
        assert held.inside is inside and (held.at_share is None) is (machine == 1.0)


@pytest.mark.parametrize(
    ("starved", "word"),
    [(None, Word.WORSE), ((0.1, 0.1), Word.WORSE), ((0.1, 0.5), Word.MACHINE), ((0.5, 0.1), Word.WORSE)],
)
def test_what_the_machine_did_not_give_may_explain_it(
    starved: Any, word: Word, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "_starved", lambda both: starved)
    c = compared(run(), run(prefill_ms=140, step_ms=14, seed=1))
    assert words(c)["e2e_ns"] is word
    assert c.widened is (starved is not None and starved[0] != starved[1])


def test_fewer_cores_are_a_change_and_no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_starved", lambda both: (0.1, 0.5))
    fewer = run(prefill_ms=140, step_ms=14, seed=1, knobs={"cores": 2})
    assert words(compared(run(knobs={"cores": 8}), fewer))["e2e_ns"] is Word.WORSE


def test_every_goal_has_a_word() -> None:
    for goal in Goal:
        c = compared(run(), run(seed=1), goal)
        found = c.of_goal()
        assert found is not None and found.metric.startswith(goal)
