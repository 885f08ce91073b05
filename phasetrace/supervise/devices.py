"""What the host's NVIDIA devices do, where NVML and its package are: not yet seen on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from phasetrace.model import Usage


class Devices:
    """Asks NVML, which asks the driver: no kernel is launched, and nothing waits for a device."""

    def __init__(self) -> None:
        self._nvml: Any = None
        self._handles: list[Any] = []
        try:
            import pynvml

            pynvml.nvmlInit()
            count = pynvml.nvmlDeviceGetCount()
            self._handles = [pynvml.nvmlDeviceGetHandleByIndex(place) for place in range(count)]
            self._nvml = pynvml
        except Exception:  # no package, no driver, no right to ask it: there is nothing to tell
            self._handles = []

    def look(self) -> Iterator[tuple[int, dict[Usage, int]]]:
        """Each device with what it tells."""
        for device, handle in enumerate(self._handles):
            try:
                yield device, self._usage(handle)
            except Exception:  # a device that was reset answers nothing
                continue

    def _usage(self, handle: Any) -> dict[Usage, int]:
        nvml = self._nvml
        return {
            Usage.DEVICE_BUSY: int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
            Usage.MEMORY: int(nvml.nvmlDeviceGetMemoryInfo(handle).used),
            Usage.DEVICE_CLOCK: int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        }
