"""Step time is flat over batch and far above the floor: per-step host and launch overhead."""

from __future__ import annotations

import statistics

from phasetrace.advise.causes.long_output import OWNS
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.step import FAR, NEAR, flat, stepped
from phasetrace.advise.table.told import Told, modelled, tried
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds, times
from phasetrace.analyze.machine import slowest_step_ns
from phasetrace.analyze.physics import bytes_of
from phasetrace.analyze.rates import decode_rows
from phasetrace.analyze.step_table import UNKNOWN
from phasetrace.model import Goal, Part, Phase, chosen
from phasetrace.semconv import Cause

WORDS = Words(
    fix=(
        "Launch less: capture decode in CUDA graphs (no eager mode), compile the decode step with a static"
        " cache, or raise the batch, which is almost free here."
    ),
    tradeoff="Capture takes time at start and memory; the first request of each new shape waits for it.",
    commands={
        "vllm": ("# leave out --enforce-eager",),
        "sglang": ("# leave out --disable-cuda-graph; --cuda-graph-max-bs N", "--enable-torch-compile"),
        "tgi": ("--cuda-graphs 1,2,4,8,16,32",),
        "tensorrt-llm": ("cuda_graph_config: {enable_padding: true}",),
        "transformers": (
            'model.generate(**inputs, cache_implementation="static")  # compiles decode on a GPU',
            'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
        ),
    },
)
FAR_FROM_FLOOR = 4.0  # times the slowest device's floor: no device of the kind is that far from its bandwidth
FEW_ROWS = 8  # sequences: more, and arithmetic may be what a step is bound by
IDLE_DEVICE = 0.4  # of a step in which the device has nothing to do: the host is late
HOST_WORK = 0.3  # of decode outside forward, processors and streamer: Python around a small model
EAGER = ("enforce_eager", "disable_cuda_graph", "no_cuda_graph")
# Times: what a static cache and a compiled step win in transformers, from about 0.9 ms a layer to 0.3 ms; its
# generation loop stays in Python. Engines that capture the whole step come down to what `expected` says.
COMPILED = 3.0
LAUNCHES_S = 10e-3  # of a step, for each layer, at the most: ten times what eager Python takes on a fast core
MANY_LAYERS = 100  # where their number is not known


def in_steps(evidence: Evidence) -> Seen | None:
    """The device idles in a step, is far from any floor of its kind, or Python takes much of it."""
    decode = evidence.phase_ns(Phase.DECODE)
    if evidence.share(decode) < OWNS or evidence.step is None:
        return None
    used = decode_rows([r.request for r in evidence.requests], evidence.table)
    device = chosen(evidence.table.device_ns, used)
    known = device != UNKNOWN
    length = evidence.table.length_ns[used][known] if known.mean() >= OWNS else device[:0]
    if device[known].sum() < (1 - IDLE_DEVICE) * length.sum():
        busy = float(device[known].sum() / length.sum())
        return _waits_for_host(
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
            return _waits_for_host(
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
        return _waits_for_host(
            evidence,
            f"{percent(around / decode)} of decode is Python around the forward pass: {seconds(around)}",
            around / decode,
            "low",
        )
    return None


def _waits_for_host(evidence: Evidence, why: str, waits: float, confidence: str) -> Seen:
    decode = evidence.phase_ns(Phase.DECODE)
    compiled = evidence.model is not None and bool(evidence.model.compiled)
    return Seen(
        decode * waits,
        evidence=(why, "the model is compiled already" if compiled else None),
        confidence=confidence,
        # Graphs take the launches away, not all of the host's work: half of the wait can be relied on.
        prediction=predict(
            evidence,
            Saving(decode_ns=decode * waits * (0.6 if confidence != "low" else 0.4), least=0.3, most=1.6),
        ),
    )


def in_table(view: View) -> Told | None:
    """The user tried graphs off and on, or steps are far above the floor and alike whatever they hold."""
    if view.goal is Goal.TTFT:
        return None
    pair = view.contrast(*EAGER, "cudagraph_mode", "compile", "torch_compile", "cuda_graph")
    if pair is not None and pair.worse.group.order != "first" and _eager(pair.worse) is not False:
        return tried(view, pair, "graphs off")
    s = stepped(view)
    if s is None or s.step is None or s.table.hardware.kind == "cpu":
        return None
    if s.step > LAUNCHES_S * ((s.shape.layers if s.shape else None) or MANY_LAYERS):
        return None  # no host is that slow
    even = flat(view)
    far = s.slower is not None and s.slower >= FAR
    near = s.slower is not None and s.slower < NEAR
    eager = _eager(s)
    if (
        near
        or s.group.host_gap_s
        or _known_reason(view, s)
        or not (far or (even and s.slower is None and eager))
    ):
        return None
    if (s.quantization and not even and not eager) or (s.devices > 1 and not even):
        return None  # a slow quantised path and communication are far above the floor too
    if not (even or eager or view.engine == "transformers"):
        return None
    said = [
        f"a step takes {seconds(s.step * 1e9)}"
        + (f", {times(s.slower)} of what a well set-up engine takes here" if s.slower else "")
    ]
    if even:
        said.append(
            f"it takes the same with {even[1].width or 0:,.0f} sequences as with"
            f" {even[0].width or 0:,.0f}: what takes the time is not their work"
        )
    if eager:
        said.append("graphs are switched off")
    gain = (
        modelled(min(s.slower, COMPILED) if view.engine == "transformers" else s.slower, 0.5)
        if s.slower
        else None
    )
    return Told(
        Tier.FAULT,
        tuple(said),
        gain=gain,
        setting=s,
        weight=1 - 1 / s.slower if s.slower else 0.4,
        confidence="high" if even and far else "medium",
    )


def _known_reason(view: View, s: Setting) -> bool:
    """Whether a setting is known that makes steps slow by itself."""
    same = all(x.dtype == s.dtype for x in view.settings)  # else the other one tells what it matters
    wide = same and bytes_of(s.dtype) == 4.0 and s.table.hardware.kind != "cpu"  # not for matrix units
    return bool(s.table.hardware.offloaded_gb) or s.knobs.get("use_cache") is False or wide


def _eager(s: Setting) -> bool | None:
    """Whether graphs are switched off; None where nothing says."""
    for name in EAGER:
        if name in s.knobs:
            return bool(s.knobs[name])
    for name in ("cuda_graph", "compile", "torch_compile"):
        if name in s.knobs:
            return not s.knobs[name]
    return None


RULE = Rule(Cause.LAUNCH_BOUND, WORDS, in_steps, in_table)
