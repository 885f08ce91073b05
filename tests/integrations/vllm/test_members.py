"""To look at those who may have changed gives the same as to look at everybody, whatever a scheduler does."""

import random
from typing import Any

import pytest

from phasetrace_vllm.members import Members
from tests.integrations.vllm.fakes import Heard, request, scheduled
from tests.integrations.vllm.test_batches import Loop

CHUNK = 16


class Engine:
    """A scheduler that does at random all that vLLM's does, `depth` steps ahead of what it processes."""

    def __init__(self, seed: int, depth: int) -> None:
        self.draw, self.depth, self.loop, self.time = random.Random(seed), depth, Loop(), 0
        self.unread: dict[str, int] = {}  # positions of the prompt, of those not ended
        self.running: list[str] = []
        self.waiting: list[str] = []
        self.again: set[str] = set()  # those of the waiting that were preempted
        self.steps: list[Any] = []  # scheduled and not processed, with who is to get a token

    def now(self) -> int:
        self.time += 1
        return self.time

    def run(self) -> Heard:
        """Two hundred steps."""
        for number in range(200):
            while self.draw.random() < 0.4 and len(self.unread) < 12:
                name = f"r{number}-{len(self.unread)}"
                self.loop.ids[name] = self.loop.batches.add(name).id
                self.unread[name] = self.draw.randint(1, 3 * CHUNK)
                self.waiting.append(name)
            self.maybe_abort()
            self.schedule()
            self.maybe_abort()
            if len(self.steps) > self.depth:
                self.process()
        return self.loop.heard

    def maybe_abort(self) -> None:
        if self.unread and self.draw.random() < 0.05:
            self.end(self.draw.choice(list(self.unread)), "ABORT")

    def end(self, name: str, reason: str) -> None:
        del self.unread[name]
        for where in (self.running, self.waiting):
            if name in where:
                where.remove(name)
        self.loop.batches.ended(request(name, reason=reason), self.now())

    def schedule(self) -> None:
        begin = self.now()
        self.loop.batches.scheduling = begin
        if self.running and self.draw.random() < 0.05:
            name = self.running.pop()
            self.loop.batches.preempted(name, begin)
            self.unread[name] = self.draw.randint(1, CHUNK)
            self.again.add(name)
            self.waiting.append(name)
            self.steps = [(output, getting - {name}) for output, getting in self.steps]
        counts, getting = {}, set()
        for name in self.running:
            if self.draw.random() < 0.98:  # else the budget is spent
                counts[name] = min(self.unread[name], CHUNK) or 1
        admitted = self.waiting[: self.draw.randint(0, 2)]
        for name in admitted:
            counts[name] = min(self.unread[name], CHUNK)
            self.waiting.remove(name)
            self.running.append(name)
        for name, positions in counts.items():
            self.unread[name] = max(0, self.unread[name] - positions)
            if not self.unread[name]:
                getting.add(name)
        resumed = tuple(name for name in admitted if name in self.again)
        self.again -= set(admitted)
        new = tuple(name for name in admitted if name not in resumed)
        output = scheduled(new, resumed, **counts)
        output.scheduled_spec_decode_tokens = {}
        self.steps.append((self.loop.schedule(output, begin, self.now()), getting))
        self.sampled = {**getattr(self, "sampled", {}), id(output): dict.fromkeys(getting, 1)}

    def process(self) -> None:
        output, getting = self.steps.pop(0)
        given = dict.fromkeys(
            (name for name in output.num_scheduled_tokens if name in self.unread and name in getting), 1
        )
        ending = [name for name in given if self.draw.random() < 0.1]
        for name in ending:
            del self.unread[name]
            self.running.remove(name)
        gone = tuple(request(name) for name in ending)
        sampled = self.sampled.pop(id(output))
        self.loop.update(output, self.now(), self.now(), gone, sampled=sampled, **given)


def said(heard: Heard) -> list[str]:
    """All of it, in no order: a step's number is in what is said of it."""
    return sorted(
        str([sorted(part) if isinstance(part, list) else part for part in one]) for one in heard.said
    )


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_same_as_to_look_at_everybody(
    seed: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, few = [], Members._some

    def watched(*args: Any) -> Any:
        looked.append(few(*args))
        return looked[-1]

    monkeypatch.setattr(Members, "_some", watched)
    found = said(Engine(seed, depth).run())
    assert sum(names is not None for names in looked) > len(looked) / 4
    monkeypatch.setattr(Members, "_some", lambda *_: None)
    assert found == said(Engine(seed, depth).run())
