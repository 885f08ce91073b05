"""What a shared step takes, learned from the recording's own steps.

time = fixed + per_sequence x sequences that decode + per_context x tokens whose KV they read + per_prefill x
prompt tokens + per_attention x (prompt tokens x context before each): weights are read once a step, KV once
a sequence, and arithmetic grows with prompt tokens and the square of their number (Pope et al. 2022, sections
2.1 and 3). A sequence with speculated tokens counts once for each position that is verified. Fitted by
non-negative least squares on relative errors, since a step's noise grows with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phasetrace.analyze.composition import Composition
from phasetrace.analyze.non_negative import Floats, from_moments
from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Ints, Part, StepCostModel

Flags = npt.NDArray[np.bool_]

FEWEST_STEPS = 32  # five coefficients from fewer steps are their noise
MOST_STEPS = 20_000  # drawn from more: the coefficients do not get better, only slower
ROUNDS = 4  # of setting stalls and one-off work aside; the set does not change any more after two or three
OUTLIER = 5.0  # robust standard deviations, and
LEAST_OUTLIER = 0.05  # as a share: steps that repeat exactly have no deviation
BLOCKS, RESAMPLES = 50, 200  # neighbouring steps share the machine's mood, so that blocks of them are drawn
LOW, HIGH = 5, 95  # percentiles of the resamples
SEED = 0
COLUMNS = 5


@dataclass(frozen=True, slots=True)
class StepTime:
    """A predicted step. Beyond what was observed the interval is wide and `beyond` says what was not."""

    ns: float
    low_ns: float
    high_ns: float
    beyond: tuple[str, ...] = ()


def fit(made: Composition, table: StepTable, process: str) -> StepCostModel | None:
    """The cost of the shared steps of a process; None where there are too few."""
    used = made.shared & ((made.sequences > 0) | (made.prompt > 0))
    its_own = np.zeros(len(used), np.bool_)
    for (owner, _), rows in table.streams.items():
        if owner == process:
            its_own[rows.begin : rows.end] = True
    durations = step_ns(table)
    chosen = np.flatnonzero(used & its_own & (durations > 0))
    if len(chosen) > MOST_STEPS:
        chosen = np.sort(np.random.default_rng(SEED).choice(chosen, MOST_STEPS, replace=False))
    if len(chosen) < FEWEST_STEPS:
        return None
    times = durations[chosen].astype(np.float64)
    columns = design(made, chosen)
    coefficients, kept = _robust(columns, times)
    fitted = columns @ coefficients
    ratio = times[kept] / fitted[kept]
    low, high = _resampled(columns[kept] / fitted[kept, None], ratio)
    fixed, per_sequence, per_context, per_prefill, per_attention = coefficients.tolist()
    return StepCostModel(
        fixed_ns=fixed,
        per_sequence_ns=per_sequence,
        per_context_ns=per_context,
        per_prefill_ns=per_prefill,
        per_attention_ns=per_attention,
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        explained=_explained(times[kept], fitted[kept]),
        spread=float(1.4826 * np.median(np.abs(ratio - 1))),
        steps=len(chosen),
        set_aside=int((~kept).sum()),
        most_sequences=float(columns[:, 1].max()),
        most_context=float(columns[:, 2].max()),
        most_prefill=float(columns[:, 3].max()),
    )


def step_ns(table: StepTable) -> Ints:
    """What each step took, without the garbage collector's time."""
    return table.length_ns - table.parts.column(Part.GC)


def design(made: Composition, rows: Ints) -> Floats:
    """(len(rows), 5): what the coefficients of the model multiply, in its order."""
    counted = (made.positions, made.context, made.prompt, made.attention)
    found = [np.ones(len(rows)), *(column[rows].astype(np.float64) for column in counted)]
    return np.stack(found, axis=1)


def coefficients_of(model: StepCostModel) -> Floats:
    """(5,): fixed, per sequence, per context token, per prompt token, per attention pair; nanoseconds."""
    return np.array(
        [
            model.fixed_ns,
            model.per_sequence_ns,
            model.per_context_ns,
            model.per_prefill_ns,
            model.per_attention_ns,
        ]
    )


def predict(
    model: StepCostModel, sequences: float, context: float, prompt: float = 0, attention: float | None = None
) -> StepTime:
    """A step of so many sequences that read the KV of `context` tokens in all, and read `prompt` tokens.

    `attention` (default: one new prompt) is prompt tokens x the mean context before each. Inside the observed
    range the interval is that of the coefficients and of the spread of steps. Beyond it, what is added may
    be free (a step that waits for weights), and at most the whole step grows in proportion (one that begins
    to be bound by arithmetic) or the added costs double, whichever is more.
    """
    pairs = prompt * prompt / 2 if attention is None else attention
    asked = np.array([1.0, sequences, context, prompt, pairs])
    most = np.array([1.0, model.most_sequences, model.most_context, model.most_prefill, np.inf])
    inside = np.minimum(asked, most)
    if prompt > model.most_prefill > 0:
        inside[4] = pairs * (model.most_prefill / prompt) ** 2
    cost = coefficients_of(model)
    ns, edge = float(asked @ cost), float(inside @ cost)
    most_times = max((a / m for a, m in zip(asked[1:4], most[1:4], strict=True) if m > 0), default=1.0)
    added = max(2 * (ns - edge), edge * (max(1.0, float(most_times)) - 1))
    names = ("sequences", "context", "prompt")
    return StepTime(
        ns,
        float(inside @ np.array(model.low)) * (1 - model.spread),
        float(inside @ np.array(model.high)) * (1 + model.spread) + added,
        tuple(name for name, a, m in zip(names, asked[1:], most[1:], strict=False) if a > m),
    )


def _robust(columns: Floats, times: Floats) -> tuple[Floats, Flags]:
    """Coefficients, and the steps that they were fitted on."""
    kept = np.ones(len(times), np.bool_)
    weight = 1 / np.maximum(times, np.median(times))
    fitted = times
    coefficients = np.zeros(COLUMNS)
    for _ in range(ROUNDS):
        scaled, values = columns[kept] * weight[kept, None], (times * weight)[kept]
        gram, moment, square = scaled.T @ scaled, scaled.T @ values, np.array([values @ values])
        coefficients = from_moments(gram[None], moment[None], square)[0]
        fitted = np.maximum(columns @ coefficients, 1.0)
        ratio = times / fitted
        deviation = 1.4826 * np.median(np.abs(ratio - np.median(ratio)))
        kept = np.abs(ratio - np.median(ratio)) <= max(LEAST_OUTLIER, OUTLIER * deviation)
        weight = 1 / fitted
    return coefficients, kept


def _resampled(scaled: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Low and high of each coefficient over draws of blocks of neighbouring steps."""
    blocks = np.array_split(np.arange(len(values)), min(BLOCKS, len(values)))
    grams = np.stack([scaled[b].T @ scaled[b] for b in blocks])
    moments = np.stack([scaled[b].T @ values[b] for b in blocks])
    squares = np.array([values[b] @ values[b] for b in blocks])
    random = np.random.default_rng(SEED)
    drawn = random.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), RESAMPLES)
    found = from_moments(
        np.einsum("rb,bij->rij", drawn, grams), drawn @ moments, (drawn @ squares).astype(np.float64)
    )
    low, high = np.percentile(found, [LOW, HIGH], axis=0)
    return low, high


def _explained(times: Floats, fitted: Floats) -> float:
    """R^2: the share of the variance that the model explains."""
    total = float(((times - times.mean()) ** 2).sum())
    return 1 - float(((times - fitted) ** 2).sum()) / total if total else 1.0
