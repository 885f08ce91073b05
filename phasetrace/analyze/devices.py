"""What known devices can do at most: memory bandwidth, dense 16-bit arithmetic, memory.

Of one device, from its maker's data sheet; arithmetic is dense (without sparsity) with 16-bit inputs on the
matrix units and 32-bit accumulation. A number that the user states goes before these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """One device. `source` is the data sheet."""

    bandwidth_gb_s: float
    tflops: float
    memory_gb: float
    source: str


_HOPPER = "NVIDIA H100/H200 data sheet"
_AMPERE = "NVIDIA A100 data sheet"
_ADA = "NVIDIA Ada GPU architecture white paper"
_GA102 = "NVIDIA GA102 GPU architecture white paper"

# Looked through in order: the longer name first, since each is looked for inside what the user wrote.
DEVICES: tuple[tuple[str, Device], ...] = (
    ("gh200", Device(4000, 989, 96, "NVIDIA GH200 data sheet")),
    ("gb200", Device(8000, 2500, 186, "NVIDIA GB200 data sheet")),
    ("gb10", Device(273, 125, 128, "NVIDIA DGX Spark data sheet")),
    ("b300", Device(8000, 2500, 288, "NVIDIA DGX B300 data sheet")),
    ("b200", Device(8000, 2250, 180, "NVIDIA DGX B200 data sheet")),
    ("h200", Device(4800, 989, 141, _HOPPER)),
    ("h100 nvl", Device(3938, 835, 94, _HOPPER)),
    ("h100 pcie", Device(2039, 756, 80, _HOPPER)),
    ("h100", Device(3350, 989, 80, _HOPPER)),
    ("h800", Device(3350, 989, 80, _HOPPER)),
    ("h20", Device(4000, 148, 96, "NVIDIA H20 data sheet")),
    ("a100 pcie 80gb", Device(1935, 312, 80, _AMPERE)),
    ("a100 sxm 80gb", Device(2039, 312, 80, _AMPERE)),
    ("a100 80gb", Device(2039, 312, 80, _AMPERE)),
    ("a100 40gb", Device(1555, 312, 40, _AMPERE)),
    ("a100 pcie 40gb", Device(1555, 312, 40, _AMPERE)),
    ("a100 sxm 40gb", Device(1555, 312, 40, _AMPERE)),
    ("a100", Device(1555, 312, 40, _AMPERE)),
    ("a800", Device(2039, 312, 80, _AMPERE)),
    ("a10g", Device(600, 70, 24, "NVIDIA A10G data sheet")),
    ("a10", Device(600, 125, 24, "NVIDIA A10 data sheet")),
    ("a30", Device(933, 165, 24, "NVIDIA A30 data sheet")),
    ("a40", Device(696, 150, 48, "NVIDIA A40 data sheet")),
    ("rtx a6000", Device(768, 155, 48, "NVIDIA RTX A6000 data sheet")),
    ("a6000", Device(768, 155, 48, "NVIDIA RTX A6000 data sheet")),
    ("rtx a5000", Device(768, 111, 24, "NVIDIA RTX A5000 data sheet")),
    ("rtx 6000 ada", Device(960, 364, 48, _ADA)),
    ("rtx pro 6000", Device(1792, 504, 96, "NVIDIA RTX PRO 6000 data sheet")),
    ("l40s", Device(864, 362, 48, "NVIDIA L40S data sheet")),
    ("l40", Device(864, 181, 48, "NVIDIA L40 data sheet")),
    ("l20", Device(864, 119.5, 48, "NVIDIA L20 data sheet")),
    ("l4", Device(300, 121, 24, "NVIDIA L4 data sheet")),
    ("t4", Device(320, 65, 16, "NVIDIA T4 data sheet")),
    ("v100", Device(900, 125, 32, "NVIDIA V100 data sheet")),
    ("p100", Device(732, 18.7, 16, "NVIDIA P100 data sheet")),
    ("p40", Device(347, 12, 24, "NVIDIA P40 data sheet (float32: it has no fast 16-bit path)")),
    ("rtx 5090", Device(1792, 209, 32, "NVIDIA Blackwell GPU architecture white paper")),
    ("rtx 5080", Device(960, 112, 16, "NVIDIA Blackwell GPU architecture white paper")),
    ("rtx 4090", Device(1008, 165, 24, _ADA)),
    ("rtx 4080", Device(717, 97, 16, _ADA)),
    ("rtx 4070", Device(504, 58, 12, _ADA)),
    ("rtx 4060", Device(272, 30, 8, _ADA)),
    ("rtx 3090", Device(936, 71, 24, _GA102)),
    ("rtx 3080", Device(760, 59, 10, _GA102)),
    ("rtx 3060", Device(360, 26, 12, _GA102)),
    ("titan rtx", Device(672, 130, 24, "NVIDIA Titan RTX data sheet")),
    ("rtx 2080 ti", Device(616, 54, 11, "NVIDIA Turing architecture white paper")),
    ("mi325x", Device(6000, 1307, 256, "AMD MI325X data sheet")),
    ("mi300x", Device(5300, 1307, 192, "AMD MI300X data sheet")),
    ("mi250x", Device(3277, 383, 128, "AMD MI250X data sheet")),
    ("mi210", Device(1638, 181, 64, "AMD MI210 data sheet")),
    ("7900 xtx", Device(960, 123, 24, "AMD RX 7900 XTX data sheet")),
    ("gaudi 3", Device(3700, 1835, 128, "Intel Gaudi 3 white paper")),
    ("gaudi 2", Device(2450, 432, 96, "Intel Gaudi 2 white paper")),
    ("tpu v5e", Device(819, 197, 16, "Google Cloud TPU v5e documentation")),
    ("tpu v5p", Device(2765, 459, 95, "Google Cloud TPU v5p documentation")),
    ("tpu v6e", Device(1640, 918, 32, "Google Cloud TPU v6e documentation")),
    ("m1 max", Device(400, 10.4, 64, "Apple M1 Max newsroom")),
    ("m1 ultra", Device(800, 21, 128, "Apple M1 Ultra newsroom")),
    ("m2 max", Device(400, 13.6, 96, "Apple M2 Max newsroom")),
    ("m2 ultra", Device(800, 27, 192, "Apple M2 Ultra newsroom")),
    ("m3 max", Device(400, 14, 128, "Apple M3 Max newsroom")),
    ("m3 ultra", Device(819, 28, 512, "Apple M3 Ultra newsroom")),
    ("m4 max", Device(546, 18, 128, "Apple M4 Max newsroom")),
)


def device(name: str | None) -> Device | None:
    """The device that the user means, however it is written; None where it is not known."""
    said = _words(name or "")
    for known, numbers in DEVICES:
        if f" {known} " in f" {said} ":
            return numbers
    return None


def _words(name: str) -> str:
    """`A100-SXM-80GB` -> `a100 sxm 80gb`; `RTX4090` -> `rtx 4090`."""
    spaced = re.sub(r"[\s\-_/()]+", " ", name.lower()).replace("sxm4", "sxm").replace("sxm5", "sxm")
    return re.sub(r"\b(rtx)(\d)", r"\1 \2", spaced).strip()
