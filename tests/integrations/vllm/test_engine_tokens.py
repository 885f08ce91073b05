"""What steps sampled is what requests got and what was discarded, on the real engine, whatever happens."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from phasetrace.analyze.prefix import repeated_prompt_tokens
from phasetrace.mapping import from_spans, to_spans
from phasetrace.model import Part, Recording, Request
from tests.integrations.agent import Run
from tests.integrations.vllm.engine import recording, run_application

pytestmark = pytest.mark.slow

AHEAD, SPECULATE = "--asynchronous", "--speculate"
ENVIRONMENT = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_PLUGINS": "somebody_else"}


class Ran:
    """A run of the application: what it counted, and what was recorded of it."""

    def __init__(self, base: Path, python: Path, model: Path, option: str) -> None:
        run, result = Run(base, python), base / "told.json"
        arguments = [str(model), str(result), *([option] if option else [])]
        done = run_application(run, "tokens_application.py", *arguments, **ENVIRONMENT)
        assert done.returncode == 0, done.stderr[-4000:]
        self.option = option
        self.told: dict[str, Any] = json.loads(result.read_text())
        self.recorded = recording(run)
        self.requests = {name_of(request): request for request in self.recorded.requests}
        (self.steps,) = self.recorded.steps
        self.columns = {name: int(column.sum()) for name, column in self.steps.known().items()}

    def returned(self, name: str) -> int:
        """Tokens that the application got."""
        return sum(self.told["requests"][name]["returned"].values())


def name_of(request: Request) -> str:
    """By the name that the application knows; the engine adds random characters to it."""
    assert request.external_id is not None
    return request.external_id.rsplit("-", 1)[0]


@pytest.fixture(scope="module", params=["", AHEAD, SPECULATE], ids=["plain", "ahead", "ngram"])
def ran(
    request: pytest.FixtureRequest,
    vllm_python: Path,
    tiny_model: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    """One run for all these tests, in each way of scheduling."""
    return Ran(tmp_path_factory.mktemp("tokens"), vllm_python, tiny_model, request.param)


def test_every_request_is_there_and_nothing_failed(ran: Ran) -> None:
    assert ran.requests.keys() == ran.told["requests"].keys()
    for process in ran.recorded.processes:
        assert (process.troubles, process.lost_records) == ((), 0)


def test_which_plugins_the_user_wants_is_left_to_him(ran: Ran) -> None:
    assert ran.told["plugins"] == "somebody_else"  # which leaves the import hook alone to record


def test_the_engine_and_its_model_are_known(ran: Ran) -> None:
    (process,) = ran.recorded.processes
    assert process.engines["vllm"] == "0.32.0"
    knobs = {"num_gpu_blocks_override": 9, "enable_prefix_caching": True, "max_num_batched_tokens": 128}
    assert knobs.items() <= process.facts.items()
    assert process.facts["async_scheduling"] is (ran.option == AHEAD)
    (model,) = {request.model for request in ran.recorded.requests}
    assert model is not None
    assert ran.recorded.models[model].layers == 2


def test_tokens_of_each_request_are_returned_or_discarded(ran: Ran) -> None:
    for name, request in ran.requests.items():
        assert request.output_tokens == ran.returned(name), name
        lost = sum(request.discarded_tokens.values())
        assert ran.told["sampled"][name] == request.output_tokens + lost, (name, request.discarded_tokens)


def test_tokens_of_all_steps_are_those_of_all_requests(ran: Ran) -> None:
    sampled = sum(ran.told["sampled"].values())
    assert ran.columns["new_tokens"] + ran.columns["discarded"] == sampled
    assert ran.columns["new_tokens"] >= sum(request.output_tokens or 0 for request in ran.requests.values())


def test_speculation_is_counted_as_the_engine_counts_it(ran: Ran) -> None:
    told = ran.told
    assert (ran.columns["proposed"], ran.columns["accepted"]) == (told["proposed"], told["accepted"])


def test_preemptions_are_counted_and_what_they_cost(ran: Ran) -> None:
    assert ran.columns["preempted"] == ran.told["preempted"]
    if ran.option == SPECULATE:  # which is over before the cache is full
        return
    assert ran.told["preempted"] > 0
    preempted = [request for request in ran.requests.values() if request.preemptions]
    assert sum(len(request.preemptions) for request in preempted) <= ran.told["preempted"]
    assert any(chunk.tokens > 1 for request in preempted for chunk in request.recomputed)


def test_positions_computed_are_those_of_the_prompts_and_the_tokens(ran: Ran) -> None:
    computed = int(ran.steps.computed_tokens.sum())  # type: ignore[union-attr]
    prompts = sum(chunk.tokens for request in ran.requests.values() for chunk in request.prefill_chunks)
    again = sum(chunk.tokens for request in ran.requests.values() for chunk in request.recomputed)
    assert 0 < prompts + again < computed
    assert max(len(request.prefill_chunks) for request in ran.requests.values()) > 1


def test_steps_lie_end_to_end_within_the_run(ran: Ran) -> None:
    steps = ran.steps
    assert int((steps.end_ns - steps.begin_ns).sum()) <= int(steps.end_ns[-1] - steps.begin_ns[0])
    assert (steps.begin_ns[1:] >= steps.end_ns[:-1]).all()


def test_a_step_took_its_time_in_the_worker(ran: Ran) -> None:
    assert ran.steps.device_ns is not None
    known = ran.steps.device_ns >= 0
    assert known.mean() > 0.99
    took = ran.steps.end_ns - ran.steps.begin_ns
    assert ran.steps.device_ns[known].sum() <= took.sum()
    if ran.option != AHEAD:  # where this worker computes a step during the one before
        assert (ran.steps.device_ns <= took).mean() > 0.95


def test_why_requests_ended(ran: Ran) -> None:
    reasons = Counter(request.finish_reason for request in ran.requests.values())
    assert reasons["stop"] >= 1
    assert ran.requests["left"].finish_reason == "abort"
    assert ran.requests["plain-0"].finish_reason == "length"


def test_structured_output_waited_for_its_grammar_and_took_time_for_masks(ran: Ran) -> None:
    grammar = ran.requests["grammar"]
    assert grammar.grammar_ns is not None
    assert ran.requests["plain-0"].grammar_ns is None
    assert int(ran.steps.parts[Part.LOGITS].sum()) > 0


def test_shared_beginnings_are_seen(ran: Ran) -> None:
    assert all(request.prefixes for request in ran.requests.values())
    assert ran.requests["shared-2"].cached_tokens == ran.told["requests"]["shared-2"]["cached"]
    assert ran.requests["shared-2"].external_cached_tokens == 0
    repeated = repeated_prompt_tokens(ran.recorded.requests)
    shared = ran.requests["shared-1"]
    assert repeated[shared.id] + (shared.cached_tokens or 0) > 32


def test_the_start_is_cut_into_stages_and_the_model_weighed(ran: Ran) -> None:
    stages = {stage.name: stage for stage in ran.recorded.stages}
    assert {"engine-start", "device-start", "model-load", "profiling", "warm-up"} <= stages.keys()
    whole = stages["engine-start"]
    for stage in stages.values():
        assert whole.begin_ns <= stage.begin_ns <= stage.end_ns <= whole.end_ns
    (model,) = ran.recorded.models.values()
    assert model.weight_bytes == 4 * (model.parameters or 0) > 0


def test_all_of_it_survives_a_file(ran: Ran) -> None:
    again: Recording = from_spans(to_spans(ran.recorded))
    assert {r.id: r for r in again.requests} == {r.id: r for r in ran.recorded.requests}
    assert (set(again.stages), again.models) == (set(ran.recorded.stages), ran.recorded.models)
