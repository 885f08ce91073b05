"""What a step takes with more sequences in it: the trace's own cost of a step, prompts that come included."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from phasetrace.analyze.rates import PrefillCost, StepCost
from phasetrace.model import RequestBreakdown, StepCostModel

ONE_SIZE = 3.0  # times the cost of a sequence either way, where it is only known from what prompts cost
VARIED = 2.0  # sequences at most: with fewer, no step shows what one more adds
BEYOND = 2.0  # times: how wrong a sequence's cost may be for batches larger than any that was seen


@dataclass(frozen=True, slots=True)
class SharedStep:
    """A step = `fixed_ns` for all its sequences + for each of them `each_ns`, from `low_ns` to `high_ns`.

    A sequence brings its share of prompt reading along: for each token written, so many are read. All but
    `fixed_ns` grows with the sequences, so `fixed_ns` is what more of them would share.
    """

    fixed_ns: float
    each_ns: float
    low_ns: float
    high_ns: float
    most: float  # sequences in a step that was seen

    def step_ns(self, sequences: float) -> float:
        """What a step with so many sequences takes, on average."""
        return self.fixed_ns + self.each_ns * sequences

    def gain(self, now: float, then: float) -> tuple[float, float, float]:
        """Times the tokens a second with `then` sequences a step instead of `now`: likely, least, most."""
        wide = BEYOND if then > self.most else 1.0
        likely, least, most = (
            (then / now) * (self.fixed_ns + cost * now) / (self.fixed_ns + cost * then)
            for cost in (self.each_ns, self.high_ns * wide, self.low_ns / wide)
        )
        return likely, min(least, likely), max(most, likely)


def shared_step(
    requests: Sequence[RequestBreakdown],
    model: StepCostModel | None,
    step: StepCost | None,
    prefill: PrefillCost | None,
) -> SharedStep | None:
    """From the model of the engine's steps, else from decode steps, else from the cost of a prompt token."""
    written = sum(r.request.output_tokens or 0 for r in requests)
    ratio = sum(r.new_prompt_tokens or 0 for r in requests) / written if written else 0.0
    if model is not None and model.most_sequences >= VARIED:
        context = statistics.fmean(_context(r) for r in requests) if requests else 0.0
        costs = [
            sequence + tokens * context + prompt * ratio
            for _, sequence, tokens, prompt, _ in (_likely(model), model.low, model.high)
        ]
        return SharedStep(model.fixed_ns, costs[0], min(costs), max(costs), model.most_sequences)
    if step is None or not (model is not None or _steps_of_their_own(requests)):
        return None  # what others add to a shared step is told by its model only
    if model is None and step.per_row_ns is not None and step.fixed_ns:
        row = step.per_row_ns
        return SharedStep(step.fixed_ns, row, row / 1.5, row * 1.5, step.most_rows)
    if prefill is None:
        return None
    beside = step.typical_ns / max(1, prefill.longest) if prefill.fixed_ns is None else 0.0
    reading = ratio if model is not None else 0.0
    return _one_size(step.typical_ns, step.fewest_rows, max(0.0, prefill.per_token_ns - beside), reading)


def _one_size(step_ns: float, rows: float, token_ns: float, ratio: float) -> SharedStep:
    """From one batch size: a sequence costs about what a token of a prompt does, beside the weights."""
    row = min(token_ns, step_ns / rows)
    reading = token_ns * ratio
    low, high = row / ONE_SIZE + reading / 1.5, row * ONE_SIZE + reading * 1.5
    return SharedStep(max(0.0, step_ns - row * rows), row + reading, low, high, rows)


def _likely(model: StepCostModel) -> tuple[float, float, float, float, float]:
    return (
        model.fixed_ns,
        model.per_sequence_ns,
        model.per_context_ns,
        model.per_prefill_ns,
        model.per_attention_ns,
    )


def _steps_of_their_own(requests: Sequence[RequestBreakdown]) -> bool:
    streams = [(r.request.process, r.request.stream) for r in requests]
    return len(set(streams)) == len(streams)


def _context(request: RequestBreakdown) -> float:
    return (request.request.prompt_tokens or 0) + (request.request.output_tokens or 0) / 2
