"""Too few CPUs for what wants to run: the kernel's own count of it."""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.gain import Saving, predict
from phasetrace.advise.words import percent, seconds
from phasetrace.analyze.host_use import host_use
from phasetrace.model import Finding, NotEnoughData, Phase
from phasetrace.semconv import Cause, CausePhase

# Of the time in which threads want a CPU. On a host with free cores it is a few percent; where two programs
# share each core it is a half.
STARVED = 0.35
HIDDEN = 0.3  # of the delay: threads that wait for each other wait at the same time


def cpu_starved(evidence: Evidence) -> Finding | NotEnoughData | None:
    """Threads of the application could run and have no CPU."""
    used = host_use(evidence.breakdown.recording, (r.request for r in evidence.requests))
    starved = used.starved if used is not None else None
    if used is None or starved is None or starved < STARVED:
        return None
    cores = evidence.knob("cores")
    phases = {phase: evidence.phase_ns(phase) for phase in (Phase.PREFILL, Phase.DECODE)}
    held = {phase: ns * starved for phase, ns in phases.items()}
    spent = int(sum(held.values()))
    device = f"the device was busy for {percent(used.device_busy)}" if used.device_busy is not None else None
    return Finding(
        cause=Cause.CPU_STARVED,
        phase=CausePhase.HOST,
        ns=spent,
        share=evidence.share(spent),
        confidence="medium",
        evidence=tuple(
            said
            for said in (
                f"its threads wanted a CPU and had none for {percent(starved)} of the time:"
                f" {seconds(used.delay_ns or 0)} of waiting beside {seconds(used.cpu_ns)} of work",
                f"the machine has {cores:,.0f} cores" if cores else None,
                device,
            )
            if said is not None
        ),
        recommendation=(
            "Give it CPUs of its own: fewer neighbours on the machine or a higher CPU limit, as many threads"
            " as physical cores, bound to one NUMA node."
        ),
        commands=evidence.typed(Cause.CPU_STARVED),
        tradeoff="Cores that are reserved are idle when it is.",
        prediction=predict(
            evidence,
            Saving(
                held[Phase.PREFILL] * (1 - HIDDEN), held[Phase.DECODE] * (1 - HIDDEN), least=0.3, most=1.4
            ),
        ),
    )
