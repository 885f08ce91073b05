"""Causes in decode that lie in what a step costs: the bound, launches, processors, drafts, slow links."""

from __future__ import annotations

import statistics

import numpy as np

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.words import count, percent, seconds
from phasetrace.analyze.machine import slowest_step_ns, weight_floor_ns
from phasetrace.analyze.rates import decode_rows
from phasetrace.analyze.step_table import UNKNOWN
from phasetrace.analyze.tokens import decode_steps
from phasetrace.model import Finding, Goal, NotEnoughData, Part, Phase
from phasetrace.semconv import Cause

OWNS = 0.5  # of the time: what decode must own before its steps are worth a look
NEAR_FLOOR = 0.6  # floor over measured: kernels that read weights reach 60 to 90 % of a measured bandwidth
FAR_FROM_FLOOR = 4.0  # times the slowest device's floor: no device of the kind is that far from its bandwidth
FEW_ROWS = 8  # sequences: more, and arithmetic may be what a step is bound by
IDLE_DEVICE = 0.4  # of a step in which the device has nothing to do: the host is late
HOST_WORK = 0.3  # of decode outside forward, processors and streamer: Python around a small model
PROCESSING = 0.15  # of decode: greedy choice alone takes under 5 %
CHOOSING = 0.03  # of decode: what choosing a token takes in any case
FASTEST_LINK = 64e9  # bytes a second: PCIe 5.0 x16; no host link that weights cross is faster


def bandwidth_bound(evidence: Evidence) -> Finding | NotEnoughData | None:
    """A step takes about as long as reading the weights once."""
    decode = evidence.phase_ns(Phase.DECODE)
    if evidence.share(decode) < OWNS or evidence.step is None or evidence.goal is Goal.TTFT:
        return None
    floor = weight_floor_ns(evidence.model, evidence.ceilings)
    if floor is None:
        return NotEnoughData(
            Cause.BANDWIDTH_BOUND,
            "the machine's memory bandwidth (state it with --engine-config) and the model's size",
        )
    reached = floor / evidence.step.typical_ns
    if reached < NEAR_FLOOR:
        return None
    steps = _steps(evidence)
    return Finding(
        cause=Cause.BANDWIDTH_BOUND,
        phase=Phase.DECODE,
        ns=decode,
        share=evidence.share(decode),
        confidence="high",
        evidence=(
            f"a step takes {seconds(evidence.step.typical_ns)}; reading the weights once takes"
            f" {seconds(floor)} ({percent(reached)} of it)",
        ),
        recommendation="Make the weights smaller (quantise), or share each read among more sequences.",
        commands=evidence.typed(
            Cause.BANDWIDTH_BOUND,
            (
                "quantized = TorchAoConfig('int8_weight_only')\n"
                "AutoModelForCausalLM.from_pretrained(name, quantization_config=quantized)",
            ),
        ),
        tradeoff="Quantised weights may change answers, and win nothing where arithmetic is the bound.",
        prediction=predict(evidence, Saving(decode_ns=floor / 2 * steps, least=0.5, most=1.0)),
    )


def launch_bound(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Steps cost host and launch overhead rather than work on the device."""
    decode = evidence.phase_ns(Phase.DECODE)
    if evidence.share(decode) < OWNS or evidence.step is None:
        return None
    used = decode_rows([r.request for r in evidence.requests], evidence.table)
    device = evidence.table.device_ns[used]
    length = (evidence.table.end_ns - evidence.table.begin_ns)[used]
    known = device != UNKNOWN
    if known.mean() >= OWNS and device[known].sum() < (1 - IDLE_DEVICE) * length[known].sum():
        busy = float(device[known].sum() / length[known].sum())
        return _launch_finding(
            evidence,
            f"the device works {percent(busy)} of a step, and waits for the host in the rest",
            1 - busy,
            "high",
        )
    model, step = evidence.model, evidence.step
    cached = statistics.mean(
        (r.new_prompt_tokens or 0) + (r.request.output_tokens or 0) for r in evidence.requests
    )
    slowest = slowest_step_ns(model, cached)
    on_cpu = model is not None and model.device == "cpu"
    if slowest is not None and not on_cpu and step.most_rows <= FEW_ROWS:
        if step.typical_ns >= FAR_FROM_FLOOR * slowest:
            return _launch_finding(
                evidence,
                f"a step takes {seconds(step.typical_ns)}; reading the weights takes at most"
                f" {seconds(slowest)} on any {model.device if model else 'such'} device",
                1 - slowest / step.typical_ns,
                "medium",
            )
    work = (Part.LOGITS, Part.SAMPLING, Part.STREAM, Part.DRAFT, Part.GC, Part.OTHER)
    split = sum(
        p.ns for phase in evidence.breakdown.phases if phase.phase is Phase.DECODE for p in phase.parts
    )
    around = split - evidence.forward_ns(Phase.DECODE)
    waits = evidence.asynchronous  # Python may only be waiting for the device
    around -= sum(evidence.part_ns(part, Phase.DECODE) for part in work)
    if split and around >= HOST_WORK * decode and evidence.engine == "transformers" and not waits:
        return _launch_finding(
            evidence,
            f"{percent(around / decode)} of decode is Python around the forward pass: {seconds(around)}",
            around / decode,
            "low",
        )
    return None


def logits_processing(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Processors, grammars and sampling after the forward pass take a large part of each step."""
    decode = evidence.phase_ns(Phase.DECODE)
    logits = evidence.part_ns(Part.LOGITS, Phase.DECODE)
    sampling = evidence.part_ns(Part.SAMPLING, Phase.DECODE)
    first = evidence.part_ns(Part.LOGITS, Phase.PREFILL)
    if not decode or logits + sampling < PROCESSING * decode:
        return None
    held = evidence.holding_back(logits + sampling)
    if held is None:
        return NotEnoughData(
            Cause.LOGITS_PROCESSING, "device times of the steps: the processors may only wait for the device"
        )
    if held < PROCESSING * decode:
        return None
    tokens = sum(r.request.longest_output or 0 for r in evidence.requests)
    avoidable = max(0.0, held - CHOOSING * decode)
    penalties = [v for v in evidence.setting("repetition_penalty") if isinstance(v, (int, float)) and v != 1]
    return Finding(
        cause=Cause.LOGITS_PROCESSING,
        phase=Phase.DECODE,
        ns=logits + sampling,
        share=evidence.share(logits + sampling),
        confidence="medium" if evidence.asynchronous else "high",
        evidence=(
            f"{percent((logits + sampling) / decode)} of decode comes after the forward pass:"
            f" {seconds(logits)} logits processors, {seconds(sampling)} choosing the token",
            *((f"{seconds((logits + sampling) / tokens)} a token",) if tokens else ()),
            *((f"a repetition penalty of {penalties[0]:g} is set",) if penalties else ()),
        ),
        recommendation="Drop or speed up logits processors: penalties, grammars, scores that nobody reads.",
        commands=evidence.typed(
            Cause.LOGITS_PROCESSING,
            (
                "model.generate(**inputs, repetition_penalty=1.0, no_repeat_ngram_size=0)",
                "model.generate(**inputs, logits_processor=None, do_sample=False)",
            ),
        ),
        tradeoff="Output changes with the processors; keep those that the task needs, as tensor operations.",
        prediction=predict(evidence, Saving(first_ns=first, decode_ns=avoidable, least=0.7, most=1.0)),
    )


def weight_offload(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Weights cross a slow link in every step, because they do not stay on the device."""
    model = evidence.model
    if model is None or not model.offloaded_bytes or not model.weight_bytes:
        return None
    steps = _steps(evidence)
    forward = evidence.forward_ns(Phase.DECODE)
    prefill = evidence.forward_ns(Phase.PREFILL)
    if not steps or not forward:
        return NotEnoughData(
            Cause.WEIGHT_OFFLOAD, "decode steps, to set their time against the bytes that move"
        )
    least = model.offloaded_bytes / FASTEST_LINK * 1e9
    resident = slowest_step_ns(model) or 0.0
    saved = max(least * steps, forward - resident * steps)
    return Finding(
        cause=Cause.WEIGHT_OFFLOAD,
        phase=Phase.DECODE,
        ns=int(min(saved, forward)),
        share=evidence.share(min(saved, forward)),
        confidence="high" if saved >= OWNS * forward else "medium",
        evidence=(
            f"{model.offloaded_bytes / 1e9:.3g} of {model.weight_bytes / 1e9:.3g} GB weights are offloaded",
            f"{count(steps, 'step')} move them each time: at least {seconds(least)} a step over the fastest"
            f" link, a step takes {seconds(forward / steps)}",
        ),
        recommendation="Keep all weights on the device: quantise them, or take a smaller model.",
        commands=evidence.typed(
            Cause.WEIGHT_OFFLOAD,
            (
                "AutoModelForCausalLM.from_pretrained(name, device_map={'': 0},\n"
                "    quantization_config=BitsAndBytesConfig(load_in_4bit=True))",
            ),
        ),
        tradeoff="Quantised weights may change answers; where offloading stays, a batch shares transfers.",
        prediction=predict(
            evidence,
            Saving(
                first_ns=min(prefill, least * len(evidence.requests)),
                decode_ns=min(saved, forward),
                least=min(0.9, least * steps / max(saved, 1.0)),
                most=1.05,
            ),
        ),
    )


def _launch_finding(evidence: Evidence, why: str, waits: float, confidence: str) -> Finding:
    decode = evidence.phase_ns(Phase.DECODE)
    compiled = evidence.model is not None and bool(evidence.model.compiled)
    return Finding(
        cause=Cause.LAUNCH_BOUND,
        phase=Phase.DECODE,
        ns=int(decode * waits),
        share=evidence.share(decode * waits),
        confidence=confidence,
        evidence=(why, *(("the model is compiled already",) if compiled else ())),
        recommendation="Launch each step as one graph: a static cache and a compiled forward pass.",
        commands=evidence.typed(
            Cause.LAUNCH_BOUND,
            (
                'model.generate(**inputs, cache_implementation="static")  # compiles decode on a GPU',
                'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
            ),
        ),
        tradeoff="The first request of each shape waits for compilation; a static cache is full length.",
        # Graphs take the launches away, not all of the host's work: half of the wait is what can be relied
        # on.
        prediction=predict(
            evidence,
            Saving(decode_ns=decode * waits * (0.6 if confidence != "low" else 0.4), least=0.3, most=1.6),
        ),
    )


def _steps(evidence: Evidence) -> int:
    return int(np.sum([decode_steps(r.request, evidence.table) or 0 for r in evidence.requests]))
