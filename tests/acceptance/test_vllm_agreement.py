"""100 requests that queue, on the real vLLM in all three ways of using it: what was recorded of them agrees
with the engine's own statistics and with a client's stopwatch, and next to nothing is unexplained.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phasetrace.model import Part, Phase, RequestBreakdown
from tests.acceptance.real import APPLICATIONS, Engine, Run
from tests.acceptance.streaming_client import Watched, ask
from tests.acceptance.vllm_server import recorded_server
from tests.integrations.vllm.engine import ENVIRONMENT

pytestmark = pytest.mark.slow

ASKED = 100
RATE = 150  # requests a second: more than 2 at a time can serve on any machine
SERVER = ["--max-num-seqs", "2", "--max-model-len", "512"]
MS = 0.001


@dataclass
class Seen:
    """A recorded run, and what the engine and the client say of each request, in seconds."""

    run: Run
    told: dict[str, dict[str, float]]
    watched: dict[str, Watched] = field(default_factory=dict)  # by trace id

    @property
    def requests(self) -> Iterator[tuple[RequestBreakdown, dict[str, float]]]:
        """Each with what was told of it."""
        breakdown = self.run.breakdown
        for each in (*breakdown.requests, *breakdown.warm_up):
            name = (each.request.external_id or "").rsplit("-", 1)[0]  # the engine adds random characters
            told = self.told[name]
            if (client := self.watched.get(each.request.trace_id)) is not None:
                told = {**told, "ttft": client.ttft, "e2e": client.e2e}
            yield each, told


@pytest.fixture(scope="module", params=["offline", "async", "server"])
def seen(
    request: pytest.FixtureRequest, vllm: Engine, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Seen:
    """One engine start for all these tests."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "server":
        return server(vllm, tiny_model, folder)
    command = vllm.application("vllm_in_process.py", request.param, str(tiny_model), str(folder / "told"))
    run = vllm.record(folder, command, env=ENVIRONMENT)
    assert run.done.returncode == 0, run.done.stderr[-4000:]
    return Seen(run, {told["id"]: told for told in json.loads((folder / "told").read_text())})


def server(vllm: Engine, model: Path, folder: Path) -> Seen:
    """Its statistics are written by a plugin of vLLM."""
    plugin = folder / "plugin"
    offer = plugin / "told-1.dist-info"
    offer.mkdir(parents=True)
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: told\nVersion: 1\n")
    (offer / "entry_points.txt").write_text("[vllm.stat_logger_plugins]\ntold = vllm_told:Told\n")
    engine = vllm.with_first(plugin, APPLICATIONS)
    told = folder / "told"
    with recorded_server(engine, folder, model, SERVER, {"TOLD": str(told)}) as served:
        watched = asyncio.run(load(served.port, served.model))
    assert served.run is not None
    return Seen(
        served.run, {one["id"]: one for one in map(json.loads, told.read_text().splitlines())}, watched
    )


async def load(port: int, model: str) -> dict[str, Watched]:
    """Streaming clients that come as they please, each with a span of its own."""
    draw = random.Random(7)

    async def client(number: int) -> tuple[str, Watched]:
        prompt = f"{number} " + "The river rises " * draw.choice((1, 8, 40))
        body = {"model": model, "prompt": prompt, "max_tokens": draw.randint(2, 40), "stream": True}
        trace = f"{number + 1:032x}"
        body |= {"temperature": 0, "ignore_eos": True}
        answer = await ask(port, "/v1/completions", body, f"00-{trace}-{number + 1:016x}-01")
        assert answer.status == 200, answer.body
        return trace, answer

    async with asyncio.TaskGroup() as tasks:
        asked = []
        for number in range(ASKED):
            asked.append(tasks.create_task(client(number)))
            await asyncio.sleep(draw.expovariate(RATE))
    return dict(task.result() for task in asked)


def differences(pairs: Iterator[tuple[float, float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds that lie between what was recorded and what was told, less what is within 1 % of it."""
    found = np.array([max(0.0, abs(ours - theirs) - theirs / 100) for ours, theirs in pairs])
    assert len(found) == ASKED
    return found


def test_phases_agree_with_the_statistics_of_the_engine(seen: Seen) -> None:
    def ours(each: RequestBreakdown, phase: str) -> float:
        if phase == "queue":
            parts = each.part_ns(Phase.QUEUE, Part.SCHEDULER)
            return (parts or each.phase_ns(Phase.QUEUE)) / 1e9
        request = each.request
        assert request.scheduled_ns and request.first_token_ns and request.last_token_ns
        if phase == "prefill":
            return (request.first_token_ns - request.scheduled_ns) / 1e9
        return (request.last_token_ns - request.first_token_ns) / 1e9

    for phase in ("queue", "prefill", "decode"):
        found = differences((ours(each, phase), told[phase]) for each, told in seen.requests)
        print(f"{phase}: {1e3 * np.median(found):.3f} ms, p95 {1e3 * np.percentile(found, 95):.3f} ms")
        assert np.median(found) < MS


def test_times_agree_with_the_stopwatch_of_a_streaming_client(seen: Seen) -> None:
    if not any("ttft" in told for _, told in seen.requests):
        return  # `LLM.generate()` hands everything over at once, when it returns
    for metric in ("ttft", "e2e"):
        ours = [(each.ttft_ns or 0 if metric == "ttft" else each.e2e_ns) / 1e9 for each, _ in seen.requests]
        theirs = [told[metric] for _, told in seen.requests]
        apart = np.abs(np.subtract(ours, theirs))
        middle, most = np.percentile(apart, (50, 95))
        print(f"{metric}: {1e3 * middle:.3f} ms of {1e3 * np.median(theirs):.0f} ms, p95 {1e3 * most:.3f} ms")
        beyond = np.maximum(0, apart - 0.02 * np.array(theirs))
        middle, most = np.percentile(beyond, (50, 95))
        assert middle < 3 * MS
        assert most < 10 * MS


def test_next_to_nothing_is_unattributed(seen: Seen) -> None:
    shares = []
    for each, _ in seen.requests:
        assert sum(phase.ns for phase in each.phases) == each.e2e_ns
        shares.append(each.phase_ns(Phase.UNATTRIBUTED) / each.e2e_ns)
    assert len(shares) == ASKED
    middle, most = np.percentile(shares, (50, 99))
    print(f"unattributed: {middle:.3%}, p99 {most:.3%}")
    assert middle <= 0.02
    assert most <= 0.05


def test_they_did_queue_and_every_token_was_counted(seen: Seen) -> None:
    waited = [each.phase_ns(Phase.QUEUE) for each, _ in seen.requests]
    assert np.median(waited) > 1_000_000
    for each, told in seen.requests:
        assert each.request.output_tokens == told["tokens"]
