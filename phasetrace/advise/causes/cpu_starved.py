"""Too few cores or badly bound threads."""

from __future__ import annotations

from phasetrace.advise.causes.host_gap import IDLE, SLOW
from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.ranking import WORTH, Tier
from phasetrace.advise.rule import Rule, Seen, Words
from phasetrace.advise.table.placement import BUSY, unread
from phasetrace.advise.table.setting import Setting
from phasetrace.advise.table.told import Told, tried, without
from phasetrace.advise.table.view import View
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze.host_use import host_use
from phasetrace.model import Phase
from phasetrace.semconv import Cause

WORDS = Words(
    fix="Give the engine more CPU cores (a higher container limit, no pinning to few, fewer neighbours on the"
    " machine), set threads to the physical cores, and bind them to one NUMA node.",
    tradeoff="Cores that are reserved are idle when it is.",
    commands={
        "vllm": ("docker run --cpus 16 ...", "VLLM_CPU_OMP_THREADS_BIND=0-15  # on CPU devices"),
        "transformers": ("torch.set_num_threads(PHYSICAL_CORES)",),
        "llama.cpp": ("llama-server --threads PHYSICAL_CORES --numa distribute",),
    },
)
# Of the time in which threads want a CPU. On a host with free cores it is a few percent; where two programs
# share each core it is a half.
STARVED = 0.35
HIDDEN = 0.3  # of the delay: threads that wait for each other wait at the same time
CORES = (
    "cpu_cores",
    "threads",
    "OMP_NUM_THREADS",
    "VLLM_CPU_OMP_THREADS_BIND",
    "num_threads",
    "n_threads",
    "threads_batch",
    "intra_op_num_threads",
    "numa",
)
THREADED = (0.4, 1.5)  # threads over cores: more wait for each other, fewer leave most cores idle
FEW_CORES = 4  # for an engine on a GPU: server, engine core, tokeniser and detokeniser want one each


def in_steps(evidence: Evidence) -> Seen | None:
    """By the kernel's own count, threads could run and had no CPU."""
    used = host_use(evidence.breakdown.recording, (r.request for r in evidence.requests))
    starved = used.starved if used is not None else None
    if used is None or starved is None or starved < STARVED:
        return None
    cores = evidence.knob("cores")
    phases = {phase: evidence.phase_ns(phase) for phase in (Phase.PREFILL, Phase.DECODE)}
    held = {phase: ns * starved for phase, ns in phases.items()}
    spent = int(sum(held.values()))
    return Seen(
        spent,
        evidence=(
            f"its threads wanted a CPU and had none for {percent(starved)} of the time:"
            f" {seconds(used.delay_ns or 0)} of waiting beside {seconds(used.cpu_ns)} of work",
            f"the machine has {cores:,.0f} cores" if cores else None,
            f"the device was busy for {percent(used.device_busy)}" if used.device_busy is not None else None,
        ),
        confidence="medium",
        prediction=predict(
            evidence,
            Saving(
                held[Phase.PREFILL] * (1 - HIDDEN), held[Phase.DECODE] * (1 - HIDDEN), least=0.3, most=1.4
            ),
        ),
    )


def in_table(view: View) -> Told | None:
    """The user tried other cores or threads, or all cores are busy and the device is not."""
    pair = view.contrast(*CORES)
    if pair is not None:
        names = [name for name in pair.differs if name in CORES or "thread" in name.lower()]
        return tried(view, pair, " ".join(names))
    s, g = view.subject, view.subject.group
    if unread(s):
        return None  # the cores compute what lies in their memory: they are busy with the model itself
    idle = g.gpu_utilization is not None and g.gpu_utilization <= IDLE
    said = tuple(why for why in (_busy(s, idle), _few(s, idle), _badly_threaded(s)) if why)
    if not said:
        return None
    gap = g.host_gap_s / s.step if g.host_gap_s and s.step else None
    return Told(
        Tier.MEASURED if len(said) > 1 or g.cpu_utilization else Tier.FAULT,
        said,
        gain=without(g.host_gap_s, s.step) if gap and s.tpot else None,
        weight=0.97 if idle else min(0.97, (gap or 0.5) + 0.01),
        confidence="high" if idle or (g.cpu_utilization or 0.0) >= BUSY else "medium",
    )


def _busy(s: Setting, idle: bool) -> str | None:
    g = s.group
    waits = idle or (g.host_gap_s and s.step and g.host_gap_s >= WORTH * s.step)
    if g.cpu_utilization is None or g.cpu_utilization < BUSY or not waits:
        return None
    return f"the cores are busy for {percent(min(1.0, g.cpu_utilization))}" + (
        f" and the device for {percent(g.gpu_utilization)}" if g.gpu_utilization is not None else ""
    )


def _few(s: Setting, idle: bool) -> str | None:
    cores, slow = s.group.cpu_cores, (s.group.host_gap_s or 0) > 0 or (s.slower or 0) >= SLOW
    if cores is None or s.table.hardware.kind == "cpu" or cores >= FEW_CORES + s.devices - 1:
        return None
    return f"{cores:,.0f} CPU cores serve the engine, its server and its tokenisers" if idle or slow else None


def _badly_threaded(s: Setting) -> str | None:
    threads, cores = s.group.threads, s.group.cpu_cores
    if s.table.hardware.kind != "cpu" or not threads or not cores:
        return None
    fits = THREADED[0] < threads / cores <= THREADED[1]
    return None if fits else f"{threads:,.0f} threads run on {cores:,.0f} cores"


RULE = Rule(Cause.CPU_STARVED, WORDS, in_steps, in_table)
