"""Numbers as people read them. The only place where nanoseconds become anything else.

duration(1_243_000_000) -> "1.24 s"   share(0.951) -> "95 %"
count(1200) -> "1,200"    rate(42.1) -> "42.1 tok/s"
"""

from __future__ import annotations

import math

from phasetrace.model import Prediction

NS_PER_S = 1_000_000_000
UNKNOWN = "?"

# (from this many nanoseconds on, nanoseconds in the unit, unit)
# Minutes and hours begin late: "90 s" says more than "1.5 min".
_DURATIONS = (
    (7_200e9, 3_600e9, "h"),
    (600e9, 60e9, "min"),
    (0.9995e9, 1e9, "s"),
    (0.9995e6, 1e6, "ms"),
    (0.9995e3, 1e3, "µs"),
)
_METRICS = {
    "ttft": "TTFT",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2e": "e2e",
    "throughput": "throughput",
}


def seconds(ns: float | None) -> float | None:
    """Nanoseconds in seconds; unknown stays unknown, and so does what is no number."""
    return None if ns is None or not math.isfinite(ns) else ns / NS_PER_S


def duration(ns: float | None) -> str:
    """Three digits and the unit that fits."""
    if ns is None or not math.isfinite(ns):
        return UNKNOWN
    unit, size = _unit(ns)
    return f"{three_digits(ns / size)} {unit}"


def span(low_ns: float, high_ns: float) -> str:
    """Two durations in the unit of the second: "8.70-9.60 s" without the unit."""
    _, size = _unit(high_ns)
    return f"{three_digits(low_ns / size)}-{three_digits(high_ns / size)}"


def share(ratio: float | None) -> str:
    """A ratio in percent: whole from 10 % on, one digit below, the first that counts below 0.1 %."""
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    percent = 100 * ratio
    if abs(percent) >= 9.95:
        return f"{percent:,.0f} %"
    if abs(percent) >= 0.095:
        return f"{percent:.1f} %"
    if 0 < percent < 0.001:
        return "<0.001 %"
    return f"{percent:.1g} %"


def count(number: int | None) -> str:
    """A count with its thousands apart."""
    return UNKNOWN if number is None else f"{number:,}"


def counted(number: int | None, noun: str) -> str:
    """A count and its noun: "1 request", "2 requests", "2 processes"."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{count(number)} {noun}{'' if number == 1 else plural}"


def rate(tokens_per_s: float | None) -> str:
    """Tokens a second."""
    if tokens_per_s is None or not math.isfinite(tokens_per_s):
        return UNKNOWN
    return f"{three_digits(tokens_per_s)} tok/s"


def metric_name(metric: str) -> str:
    """The field's word for a metric: "ttft_ns" and "ttft_s" -> "TTFT"."""
    return _METRICS.get(metric.split("_")[0], metric)


def gain(prediction: Prediction) -> str:
    """What a fix will bring: "e2e 30.0 s -> 9.10 s (8.70-9.60), 3.3x"."""
    p = prediction
    name = metric_name(p.metric)
    if p.metric.endswith("_s") and not p.metric.endswith("tok_s"):
        before, after, low, high = (v * NS_PER_S for v in (p.before, p.after, p.low, p.high))
        change = f"{duration(before)} -> {duration(after)} ({_bounds(low, high, after)})"
    else:
        bounds = f"{three_digits(p.low)}-{three_digits(p.high)}"
        change = f"{three_digits(p.before)} -> {rate(p.after)} ({bounds})"
    return f"{name} {change}, {ratio(p.ratio)}"


def ratio(value: float) -> str:
    """How many times better: "3.3x", "1.08x"."""
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:.2f}x" if value < 2 else f"{value:.1f}x" if value < 20 else f"{value:.0f}x"


def three_digits(value: float) -> str:
    """Three significant digits without an exponent; whole numbers from 100 on."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    if rounded == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{min(places, 6)}f}"


def _unit(ns: float) -> tuple[str, float]:
    for least, size, unit in _DURATIONS:
        if abs(ns) >= least:
            return unit, size
    return "ns", 1.0


def _bounds(low_ns: float, high_ns: float, after_ns: float) -> str:
    # Without a unit only where both bounds share that of the value before them.
    if _unit(low_ns)[0] == _unit(high_ns)[0] == _unit(after_ns)[0]:
        return span(low_ns, high_ns)
    return f"{duration(low_ns)}-{duration(high_ns)}"
