"""Where the weights of a table's model are."""

from __future__ import annotations

from phasetrace.advise.table.setting import Setting

UNUSED = 0.02  # of the time: samplers round to whole percents, and a device that decodes shows tens of them
BUSY = 0.85  # of the cores: the host has nothing left
PLACED = ("n_gpu_layers", "gpu_layers", "num_gpu_layers", "ngl", "num_gpu")


def unread(s: Setting) -> bool:
    """Whether the device was busy for less of each step than reading the weights from its memory takes."""
    used = s.group.gpu_utilization
    if used is None or s.table.hardware.kind == "cpu" or s.group.cpu_utilization is None:
        return False
    if s.group.cpu_utilization < BUSY:
        return False
    return used <= UNUSED or bool(s.step and s.step_floor and used * s.step < 0.5 * s.step_floor)
