"""The faults planted in `examples/faults/vllm`: what is right to say of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from phasetrace.model import Goal
from phasetrace.semconv import Cause


@dataclass(frozen=True)
class Planted:
    """An application, the causes that are right, the goal that its user states, and a word of the advice."""

    script: str
    causes: frozenset[str]
    goal: Goal | None = None
    says: str = ""
    slo: dict[str, float] = field(default_factory=dict, hash=False)
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "_".join([self.script, *self.arguments])

    @property
    def options(self) -> list[str]:
        """What its user tells `phasetrace diagnose`."""
        limits = ",".join(f"{metric}={limit}" for metric, limit in self.slo.items())
        return [*(["--goal", self.goal] if self.goal else []), *(["--slo", limits] if limits else [])]


def first_of(causes: Sequence[str]) -> int:
    """The place of the first finding that is the application's own.

    Tests share their machine. Where neighbours take its CPUs, the kernel's count of threads that want one
    says so: that is true, may well be what costs most, and is not what was planted.
    """
    return next((place for place, cause in enumerate(causes) if cause != Cause.CPU_STARVED), 0)


def planted(script: str, *causes: str, goal: Goal | None = None, says: str = "") -> Planted:
    return Planted(script, frozenset(causes), goal, says)


def healthy(service: str, **slo: float) -> Planted:
    return Planted("healthy", frozenset({"healthy"}), slo=slo, arguments=(service,))


FAULTS = (
    planted("slots_full", "slots-full", says="max-num-seqs"),
    planted("kv_full", "kv-full"),
    planted("preemption", "kv-full", "preemption"),
    planted("small_prefill_chunk", "small-prefill-chunk", goal=Goal.TTFT, says="max-num-batched-tokens"),
    planted("prefill_interference", "prefill-interference", goal=Goal.TPOT),
    planted("prefix_not_reused", "prefix-not-reused", goal=Goal.TTFT, says="enable-prefix-caching"),
    planted("changing_first_line", "prefix-not-reused", goal=Goal.TTFT, says="differ"),
    planted("overload", "overload"),
    planted("json_schema", "grammar-compile", "logits-processing"),
    planted("speculation_loss", "speculation-loss", goal=Goal.TPOT),
    planted("long_output", "long-output", goal=Goal.TTFT, says="stream"),
)
# No fault is planted in these. The limits are about the verdict, not about the machine: they hold where
# others take most of its two cores, too
HEALTHY = (healthy("chat", ttft=2.0, tpot=0.4), healthy("forms", ttft=4.0), healthy("batch", e2e=60.0))
