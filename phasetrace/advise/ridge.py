"""From how many positions on arithmetic bounds a forward pass, where the machine's ceilings are unknown.

Below the ridge a pass takes what reading the weights takes, above it grows with the positions
[Williams et al. 2009, Roofline]: peak arithmetic / bandwidth x bytes of a weight / 2.
"""

from __future__ import annotations

from phasetrace.advise.evidence import Evidence

# The least, the likely, the most. Data sheets from A100 to H200, with 16-bit weights: 150 to 300; prefill
# reaches 35 to 75 % of the peak.
GPU = (100.0, 200.0, 300.0)
# Cores have more bandwidth for their arithmetic. With 32-bit weights 9 to 31 were measured (transformers
# 5.24, models of 256 to 1,024 wide, one and two threads); units for 16-bit matrices are several times faster.
CPU, CPU_HALF = (9.0, 20.0, 40.0), (16.0, 40.0, 160.0)


def ridge(evidence: Evidence) -> tuple[float, float, float]:
    """Positions, at the least, likely and at the most."""
    model = evidence.model
    if model is None or model.device != "cpu":
        return GPU
    return CPU if model.dtype in (None, "float32") else CPU_HALF


def left(ridge: float, positions: float, fewer: float) -> float:
    """The share of a pass over so many positions that one over `fewer` of them takes."""
    return max(ridge, fewer) / max(ridge, positions)
