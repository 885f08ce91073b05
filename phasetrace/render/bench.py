"""What `phasetrace bench` measured, as text: ceilings, prefill by length, decode by batch and context."""

from __future__ import annotations

from phasetrace.analyze.bench import Bench, Point
from phasetrace.analyze.physics import Ceiling as _Ceiling
from phasetrace.analyze.physics import ridge_tokens
from phasetrace.render import units
from phasetrace.render.ink import Cell, Ink, columns

NS = 1e9


def bench(b: Bench, width: int = 80, color: bool = False, ascii: bool = False) -> str:
    """The whole report."""
    ink = Ink(width, color, ascii)
    blocks = [machine(b, ink), seed(b, ink), prefill(b, ink), decode(b, ink), reading(b, ink)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def machine(b: Bench, ink: Ink) -> list[str]:
    """The ceilings."""
    where = b.name if b.name != b.device else f"{b.device}, {units.counted(b.threads, 'thread')}"
    lines = [
        ink.bold(f"{ink.say(where)}, {b.dtype}"),
        f"  memory      {units.three_digits(b.bandwidth_bytes_s / 1e9)} GB/s (read and write of a copy)",
        f"  arithmetic  {units.three_digits(b.flops_s / 1e9)} GFLOP/s (a product of matrices)",
    ]
    if b.shape is not None:
        size = f"{units.three_digits(b.shape.parameters / 1e6)} million parameters"
        lines.append(f"  model       {size}, {units.three_digits(b.shape.weight_bytes / 1e6)} MB")
        ridge = ridge_tokens(b.shape, _Ceiling(b.bandwidth_bytes_s, b.flops_s))
        if ridge is not None:
            lines.append(
                f"  ridge       {units.three_digits(ridge)} tokens in a forward: fewer are bound by memory"
            )
    return lines


def seed(b: Bench, ink: Ink) -> list[str]:
    """The measurement that says what it is all about."""
    if b.seed is None:
        return []
    s = b.seed
    read, written = units.duration(s.read_s * NS), units.duration(s.written_s * NS)
    ratio = units.ratio(s.written_s / s.read_s)
    return ink.wrap(
        f"{s.tokens:,} tokens read in {read}, {s.tokens:,} written in {written}: that takes {ratio} as long"
    )


def prefill(b: Bench, ink: Ink) -> list[str]:
    """Reading, by length."""
    rows: list[tuple[Cell, ...]] = [("  tokens read", "time", "tokens/s", "of the floor", "")]
    rows += [(f"  {p.count:,}", *_figures(p, p.count / p.seconds), _bar(p, ink)) for p in b.prefill]
    return columns(rows, right=(0, 1, 2, 3)) if b.prefill else []


def decode(b: Bench, ink: Ink) -> list[str]:
    """Writing, by batch and by context."""
    rows: list[tuple[Cell, ...]] = [("  at a time", "after", "a step", "tokens/s", "of the floor", "")]
    rows += [
        (f"  {p.count:,}", f"{p.context:,}", *_figures(p, p.count / p.seconds), _bar(p, ink))
        for p in b.decode
    ]
    return columns(rows, right=(0, 1, 2, 3, 4)) if b.decode else []


def reading(b: Bench, ink: Ink) -> list[str]:
    """What follows."""
    said = []
    if b.fixed_s is not None:
        said.append(f"a step takes {units.duration(b.fixed_s * NS)} beside reading the weights")
    if b.per_sequence_s is not None:
        said.append(f"a second sequence adds {units.duration(b.per_sequence_s * NS)}")
    return ink.wrap("; ".join(said)) if said else []


def _figures(p: Point, rate: float) -> tuple[str, str, str]:
    part = units.share(p.efficiency) if p.efficiency is not None else units.UNKNOWN
    return units.duration(p.seconds * NS), units.three_digits(rate), part


def _bar(p: Point, ink: Ink) -> str:
    filled = round(20 * min(1.0, p.efficiency or 0.0))
    return ("#" if ink.ascii else "█") * filled
