"""The device could carry many more sequences per weight read (goal: throughput)."""

from __future__ import annotations

import math

import numpy as np

from phasetrace.advise.batching import UNEVEN, as_one_batch
from phasetrace.advise.causes.long_output import SLOW
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import predict_rates
from phasetrace.advise.knobs import CAPS
from phasetrace.advise.ranking import Tier
from phasetrace.advise.recompute import PER_CALL, recomputes
from phasetrace.advise.rule import Measure, Rule, Seen, Words
from phasetrace.advise.table.contrast import MATTERS
from phasetrace.advise.table.queue import MORE_SLOTS, at_cap, more_throughput
from phasetrace.advise.table.told import Told, measured, modelled
from phasetrace.advise.table.view import View
from phasetrace.advise.words import count, percent, seconds, times
from phasetrace.analyze import physics
from phasetrace.model import Goal, Phase
from phasetrace.semconv import Cause

PADDED = """tokenizer.padding_side = "left"
inputs = tokenizer({}, padding=True, return_tensors="pt")
model.generate(**inputs, max_new_tokens=n)"""
IN_BATCHES = "batch = prompts[i:i + {}]\n" + PADDED.format("batch")
FROM_A_QUEUE = (
    "# one thread owns the model; handlers put prompts into a queue and wait\n"
    "prompts = [waiting.get(), *(waiting.get() for _ in range(waiting.qsize()))]\n"
) + PADDED.format("prompts")
CONTINUOUS = "model.generate_batch(prompt_ids, generation_config)  # continuous batching"
WORDS = Words(
    fix=(
        "Give the engine more sequences at a time: raise the client's concurrency (many requests in"
        " parallel), and the batch or the cap on concurrent sequences where that binds."
    ),
    tradeoff="Each token takes a little longer; more KV cache is used.",
    commands={
        "vllm": (
            "llm.generate(prompts, sampling)  # all prompts in one call",
            "--max-num-seqs 64  # and as many requests open at the client",
        ),
        "sglang": ("--max-running-requests 64  # and as many requests open at the client",),
        "llama.cpp": ("llama-server --parallel 8 --cont-batching",),
        "transformers": (IN_BATCHES.format(16), CONTINUOUS),
    },
)
SUGGESTED_BATCH = 16  # sequences: weights are read once for all; beyond, memory and waiting need thought
FEW = 8  # sequences: all common devices carry more for one reading of the weights
WAITING = 0.1  # of the time in the queue: with more, the load is there already
OF_RIDGE = 0.25  # of the batch from which on arithmetic binds: below, more sequences are nearly free


def in_steps(evidence: Evidence) -> Seen | Measure | None:
    """Prompts that could share each reading run one at a time, or contend, or an engine is given few."""
    load = evidence.load
    if evidence.goal is Goal.THROUGHPUT and evidence.engine not in PER_CALL:
        return _served(evidence)
    if evidence.goal is not Goal.THROUGHPUT or load is None or not (load.loop or load.contending):
        return None
    if any(recomputes(evidence, r) for r in evidence.requests):
        return None  # without a KV cache a step is bound by arithmetic: a batch would not share much
    decode = evidence.phase_ns(Phase.DECODE)
    batch = min(SUGGESTED_BATCH, load.requests if load.loop else max(2, round(load.concurrency)))
    found = as_one_batch(evidence, batch)
    if found is None:
        return Measure("decode steps and prompt lengths, to price a sequence more")
    if found.ratio < MATTERS:
        return None
    steps = evidence.decode_steps
    return Seen(
        decode,
        evidence=(
            (
                f"{count(load.requests, 'prompt')} ran one after the other,"
                f" idle between them for {percent(load.idle_share)} of the time: none had to be waited for"
                if load.loop
                else f"{load.concurrency:.1f} calls ran at a time on one model, each with its own steps"
            ),
            f"each step reads all weights for {count(load.prompts_per_call, 'prompt')},"
            f" {count(steps, 'step')} in all",
            f"at the trace's own cost of a token, {batch} sequences a step give {times(found.ratio)} of it",
        ),
        confidence="high" if load.loop else "medium",
        fix=f"Give the model about {batch} prompts at a time."
        if load.loop
        else f"Serve the calls that wait, about {batch} here, as one batch, from one thread.",
        commands={"transformers": (IN_BATCHES.format(batch), CONTINUOUS) if load.loop else (FROM_A_QUEUE,)},
        tradeoff="Each prompt waits for its batch, whose KV cache takes memory; sort prompts by length.",
        prediction=found,
    )


def _served(evidence: Evidence) -> Seen | Measure | None:
    """An engine that batches by itself, and is given few requests at a time."""
    table, shared = evidence.table, evidence.shared
    length = table.length_ns.astype(np.float64)
    known = table.running > 0
    if not known.any() or evidence.phase_ns(Phase.QUEUE) >= WAITING * evidence.total_ns:
        return None  # requests wait already: what they wait for is what to change
    running = float((table.running * length)[known].sum() / length[known].sum())
    cap = evidence.knob(*CAPS) or math.inf
    wanted = min(max(SUGGESTED_BATCH, 2 * running), cap)
    if running > FEW or wanted < 2 * running:
        return None
    if shared is None:
        return Measure("steps with more sequences, to price one more: raise the load once")
    gains = shared.gain(running, wanted)
    if gains[0] < MATTERS:
        return None
    decode = evidence.phase_ns(Phase.DECODE)
    return Seen(
        decode,
        evidence=(
            f"{running:.2g} sequences share each read of the weights on average, and none waits for a slot",
            f"a step takes {seconds(shared.step_ns(running))};"
            f" {percent(shared.fixed_ns / shared.step_ns(running))} of that does not depend on how many run",
            f"{wanted:,.0f} sequences a step would give about {times(gains[0])} of the tokens a second",
        ),
        confidence="high" if running < shared.most / 2 else "medium",
        fix=f"Give the engine more sequences at a time, about {wanted:,.0f}: raise the client's concurrency"
        " (many requests in parallel), or hand a list of prompts to one call.",
        prediction=predict_rates(evidence, (gains[0], gains[1] * UNEVEN, gains[2])),
    )


def in_table(view: View) -> Told | None:
    """Few sequences share a step, arithmetic is far from binding, and the KV cache has room."""
    s = view.subject
    width = s.width
    if view.goal is not Goal.THROUGHPUT or width is None or s.crawls:
        return None
    if s.step is not None and s.step_expected and s.slower is not None and s.slower > SLOW and width > FEW:
        return None
    ridge = physics.ridge_tokens(s.shape, s.ceiling) if s.shape and s.ceiling else None
    room = max(FEW, OF_RIDGE * ridge) if ridge else FEW
    fit = s.fit
    if width > room or (fit is not None and fit < 2 * width):
        return None
    wider = next(
        (
            x
            for x in sorted(view.settings, key=lambda x: -(x.throughput or 0))
            if x.width and x.width >= 1.5 * width and x.throughput and s.throughput
        ),
        None,
    )
    said = [f"{width:,.0f} sequence{'s' if width != 1 else ''} share each read of the weights"]
    if ridge:
        said.append(f"arithmetic would bind from about {ridge:,.0f} on")
    if fit:
        said.append(f"the KV cache has room for {fit:,.0f}")
    if wider is not None and wider.throughput and s.throughput:
        ratio = wider.throughput / s.throughput
        if ratio < MATTERS:
            return None
        said.append(f"{wider.name} with {wider.width:,.0f} gives {times(ratio)} of the throughput")
        gain = measured(ratio)
    else:
        more = max(MORE_SLOTS, FEW / width)
        more = min(more, fit / width) if fit else more
        gain = modelled(more_throughput(s, more), 0.4)
        said.append(f"{more * width:,.0f} would give about {times(gain.ratio)} of the throughput")
    return Told(
        Tier.FAULT if width <= FEW else Tier.BOUND,
        tuple(said),
        gain=gain,
        confidence="high" if wider is not None and not at_cap(s) else "medium",
    )


RULE = Rule(Cause.SMALL_BATCH, WORDS, in_steps, in_table)
