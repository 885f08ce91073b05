"""Where a recording's steps lie under the roof of its machine [Williams et al. 2009, Roofline]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phasetrace.analyze.step_table import UNKNOWN, StepTable
from phasetrace.model import Ints, Part, Recording

MOST_POINTS = 24  # of one kind: more would cover each other


@dataclass(frozen=True, slots=True)
class Point:
    """Steps of one kind and of like size. Medians: tokens a step, operations a byte, operations a second."""

    kind: str  # prefill | decode
    steps: int
    tokens: float
    intensity: float
    flops_s: float


@dataclass(frozen=True, slots=True)
class Size:
    """What a forward pass reads and multiplies: bytes of all weights, parameters that a token uses."""

    weight_bytes: float
    active_parameters: float


def size(recording: Recording) -> Size | None:
    """Of the one model: as its own facts say, else what each worker says of its shard. None where unknown."""
    if len(recording.models) != 1:
        return None
    (model,) = recording.models.values()
    if model.weight_bytes and model.parameters:
        return Size(model.weight_bytes, model.active_parameters or model.parameters)
    shards = [p.facts for p in recording.processes if "worker_weight_bytes" in p.facts]
    weighed = sum(float(facts["worker_weight_bytes"]) for facts in shards)
    parameters = sum(float(facts.get("worker_parameters", 0)) for facts in shards)
    return Size(weighed, parameters) if weighed and parameters else None


def points(recording: Recording, table: StepTable, prompt_tokens: Ints) -> list[Point]:
    """Steps that only decode and steps that read prompts (`prompt_tokens` of each step), by size.

    Operations are 2 x parameters a token, bytes the weights once: attention and the KV cache are left out of
    both, so long contexts read more and compute more than is said here.
    """
    of_model = size(recording)
    if of_model is None:
        return []
    tokens = np.where(table.computed_tokens == UNKNOWN, table.running, table.computed_tokens)
    forward = table.parts.column(Part.FORWARD)
    took = np.where(forward > 0, forward, table.length_ns)
    usable = (tokens > 0) & (took > 0)
    kinds = (("prefill", prompt_tokens > 0), ("decode", prompt_tokens == 0))
    return [
        p
        for kind, chosen in kinds
        for p in _by_size(kind, tokens[usable & chosen], took[usable & chosen], of_model)
    ]


def _by_size(kind: str, tokens: Ints, took: Ints, of_model: Size) -> Iterator[Point]:
    """A point for each number of tokens where they are few, else for each stretch of numbers."""
    if len(tokens) == 0:
        return
    edges = np.unique(np.geomspace(tokens.min(), tokens.max() + 1, MOST_POINTS + 1).astype(np.int64))
    group = edges.searchsorted(tokens, side="right")
    for number in np.unique(group):
        inside = group == number
        count, seconds = float(np.median(tokens[inside])), float(np.median(took[inside])) / 1e9
        flops = 2 * of_model.active_parameters * count
        yield Point(kind, int(inside.sum()), count, flops / of_model.weight_bytes, flops / seconds)
