"""Every mode of `generate()`, with each version: the application gets what it gets without recording."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from phasetrace.model import Recording, Request, RequestStatus, Steps
from phasetrace_agent import layout
from tests.integrations.transformers.recorded import Recorded, run_plain, run_recorded

pytestmark = pytest.mark.slow


class Both(NamedTuple):
    """One version's run of all modes, with and without recording."""

    version: tuple[int, ...]
    plain: dict[str, Any]
    seen: dict[str, Any]
    recorded: Recorded

    @property
    def recording(self) -> Recording:
        return self.recorded.recording

    def requests(self, mode: str) -> list[Request]:
        return [request for request in self.recording.requests if request.mode == mode]

    def steps(self, request: Request) -> list[Steps]:
        return [steps for steps in self.recording.steps if steps.stream == request.stream]


@pytest.fixture(scope="module")
def both(engine_python: Path, transformers_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Both:
    recorded = run_recorded(tmp_path_factory.mktemp("modes"), engine_python, transformers_dir, "modes.py")
    plain = run_plain(engine_python, transformers_dir, "modes.py")
    version = tuple(int(part) for part in transformers_dir.name.rsplit("-", 1)[1].split("."))
    return Both(version, json.loads(plain), json.loads(recorded.output), recorded)


def test_outputs_are_identical_in_every_mode(both: Both) -> None:
    assert {
        name: (both.plain[name], both.seen[name])
        for name in both.plain
        if both.plain[name] != both.seen[name]
    } == {}
    assert both.plain.keys() == both.seen.keys()


def test_only_what_this_version_does_not_have_was_refused(both: Both) -> None:
    refused = {name for name, value in both.plain.items() if str(value).startswith(("refused", "absent"))}
    expected = {"error", "error in the middle"}
    if both.version < (4, 57):
        expected |= {"chunked prefill", "custom generate", "generate_batch"}
    else:
        expected |= {"contrastive"}  # moved to a repository of its own
    assert refused == expected


def test_no_hook_failed(both: Both) -> None:
    assert [layout.decode_blob(p)[3] for kind, p in both.recorded.records if kind == layout.TROUBLE] == []
    assert [process.troubles for process in both.recording.processes] == [()]


def test_every_call_is_a_request(both: Both) -> None:
    modes = {request.mode for request in both.recording.requests}
    assert modes >= {"greedy", "sample", "beam", "beam_sample", "assisted", "prompt_lookup"}
    failed = [r for r in both.recording.requests if r.status == RequestStatus.FAILED]
    assert {r.error_type for r in failed} == {"ValueError", "RuntimeError"}
    assert all(r.status != RequestStatus.CUT_OFF for r in both.recording.requests)


def test_steps_add_up_to_the_request(both: Both) -> None:
    checked = 0
    for request in both.recording.requests:
        if request.mode == "continuous" or request.status != RequestStatus.OK:
            continue
        steps = both.steps(request)
        if not steps:
            continue
        called = request.received_ns if request.tokenize_ns else request.arrival_ns
        assert steps[0].begin_ns[0] == called
        for one in steps:
            assert (sum(one.parts.values()) == one.end_ns - one.begin_ns).all()
            assert (one.begin_ns[1:] == one.end_ns[:-1]).all()
        assert steps[-1].end_ns[-1] <= (request.finished_ns or 0)
        checked += 1
    assert checked >= 20


def test_tokens_of_padded_rows_beams_and_parallel_samples(both: Both) -> None:
    padded = [r for r in both.requests("greedy") if len(r.sequences) == 3]
    assert [(s.prompt_tokens, s.padding_tokens) for s in padded[0].sequences] == [(24, 0), (15, 9), (24, 0)]
    assert [s.output_tokens for s in both.requests("beam_sample")[0].sequences] == [8, 8]
    sampled = [r for r in both.requests("sample") if len(r.sequences) == 3]
    assert [s.output_tokens for s in sampled[0].sequences] == [8, 8, 8]


def test_beams_that_end_early_say_so(both: Both) -> None:
    early = next(r for r in both.requests("beam") if r.settings.get("early_stopping") is True)
    assert early.finish_reason == "stop"
    assert (early.output_tokens or 99) < 30


def test_speculation_yields_several_tokens_a_step(both: Both) -> None:
    for mode in ("assisted", "prompt_lookup"):
        requests = both.requests(mode)
        assert requests
        for request in requests:
            steps = sum(len(s) for s in both.steps(request))
            given = steps + sum(count.tokens - 1 for count in request.yields)
            assert request.output_tokens is not None
            assert request.output_tokens <= given <= request.output_tokens + 5
    assert any(count.tokens > 1 for r in both.requests("prompt_lookup") for count in r.yields)


def test_pipelines_tell_their_tokenising(both: Both) -> None:
    told = [r for r in both.recording.requests if r.tokenize_ns]
    assert [r.operation for r in told] == ["text_completion", "text_completion", "chat"]
    assert all(r.detokenize_ns for r in told)


def test_a_continued_cache_is_counted(both: Both) -> None:
    assert [r.cached_tokens for r in both.recording.requests if r.cached_tokens] == [28]


def test_the_encoder_is_a_part_of_its_own(both: Both) -> None:
    encoded = [
        s for s in both.recording.steps if s.parts.get("encode") is not None and s.parts["encode"][0] > 0
    ]
    assert len(encoded) == 2


def test_chunks_of_a_prompt_are_told(both: Both) -> None:
    if both.version < (4, 57):
        pytest.skip("4.46 has no chunked prefill")
    chunked = next(r for r in both.recording.requests if "prefill_chunk_size" in r.settings)
    assert len(chunked.prefill_chunks) >= 3
    assert sum(count.tokens for count in chunked.prefill_chunks) == 24


def test_continuous_batching_has_a_queue_and_a_batch(both: Both) -> None:
    if both.version < (4, 57):
        pytest.skip("4.46 has no continuous batching")
    requests = both.requests("continuous")
    assert [r.prompt_tokens for r in requests] == [15, 15, 15, 60]
    assert [r.output_tokens for r in requests] == [len(t) for t in both.seen["generate_batch"]]
    assert len({r.stream for r in requests}) == 1
    for request in requests:
        assert request.arrival_ns <= (request.scheduled_ns or 0) < (request.first_token_ns or 0)


def test_prompts_are_hashed(both: Both) -> None:
    hashed = [r for r in both.recording.requests if r.prefixes]
    assert len(hashed) > 20
    for request in hashed:
        for sequence, chunks in zip(request.sequences, request.prefixes, strict=False):
            assert sum(c.tokens for c in chunks) in (sequence.prompt_tokens, 0)
