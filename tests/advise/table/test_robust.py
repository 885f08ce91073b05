"""Measuring error keeps the verdict, and a number that is missing makes it less sure, not another."""

import inspect
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import pytest

from phasetrace.advise import causes, diagnose_table
from phasetrace.advise.table import against_device, checks, contrast, placement, queue, step
from phasetrace.model import Group, Table
from phasetrace.read import read_any
from phasetrace.semconv import Cause
from tests.advise.table.reports import REPORTS
from tests.advise.table.situations import SITUATIONS

DRAWS = 1000 if os.environ.get("PHASETRACE_CAMPAIGN") == "fuzz" else 20
NOISE = 0.1
KEPT = 0.95  # of the draws
# What the user sets is known exactly; only what is measured moves.
SET = {"devices", "sequences_per_request", "repetition_penalty", "lora_adapters", "speculative_tokens"}
SET |= {"cpu_cores", "threads", "logprobs"}
FRACTIONS = ("_usage", "_utilization", "_share", "hit_rate")


def tables(root: Path, folder: Path) -> Iterator[tuple[str, Table]]:
    for path in sorted((root.parent / "shared" / "cases" / "visible").glob("c*.json")):
        yield path.stem, told(path)
    for name, _, document in (*SITUATIONS, *REPORTS):
        path = folder / "made.json"
        path.write_text(json.dumps(document))
        yield name, told(path)


def told(path: Path) -> Table:
    table = read_any(path)
    assert isinstance(table, Table)
    return table


def accepted(root: Path) -> dict[str, set[str]]:
    """Of each table, the causes that are right: public and made ones may have several."""
    found = {name: set(causes) for name, causes, _ in (*SITUATIONS, *REPORTS)}
    lines = root.parent / "shared" / "cases" / "visible" / "EXPECTED.jsonl"
    if lines.is_file():
        for line in map(json.loads, lines.read_text().splitlines()):
            found[Path(line["case"]).stem] = set(line["accept"])
    return found


def shaken(table: Table, chance: random.Random) -> Table:
    return replace(table, groups=tuple(_shaken(group, chance) for group in table.groups))


def _shaken(group: Group, chance: random.Random) -> Group:
    moved: dict[str, Any] = {}
    for f in fields(group):
        value = getattr(group, f.name)
        if f.name in SET or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        other = value * chance.uniform(1 - NOISE, 1 + NOISE)
        if f.name.endswith(FRACTIONS) and value <= 1:
            other = min(1.0, other)
        moved[f.name] = round(other) if isinstance(value, int) else other  # a count stays a whole number
    return replace(group, **moved)


def test_noise_keeps_the_cause(root: Path, tmp_path: Path) -> None:
    lost = {}
    for name, table in tables(root, tmp_path):
        cause = diagnose_table(table).cause
        found = Counter(diagnose_table(shaken(table, random.Random(n))).cause for n in range(DRAWS))
        if found[cause] < KEPT * DRAWS:
            lost[name] = {str(c): n for c, n in found.items()}
    assert not lost


def without_a_number(table: Table) -> Iterator[tuple[str, Table]]:
    for n, group in enumerate(table.groups):
        for f in fields(group):
            if getattr(group, f.name) is not None and f.name != "label":
                groups = list(table.groups)
                groups[n] = replace(group, **{f.name: None})
                yield f"{group.label}.{f.name}", replace(table, groups=tuple(groups))
    for name, part in (("model", table.model), ("hardware", table.hardware)):
        for f in fields(part):
            if getattr(part, f.name) is not None:
                less = replace(part, **{f.name: None})
                yield f"{name}.{f.name}", replace(table, **{name: less})


def test_a_missing_number_makes_no_other_cause_certain(root: Path, tmp_path: Path) -> None:
    certain, right = [], accepted(root)
    for name, table in tables(root, tmp_path):
        cause = diagnose_table(table).cause
        for what, less in without_a_number(table):
            first = diagnose_table(less).findings[0]
            if first.cause not in (cause, Cause.UNKNOWN, *right[name]) and first.confidence == "high":
                certain.append((name, what, str(cause), str(first.cause)))
    assert not certain


@pytest.mark.parametrize("seed", range(max(5, DRAWS // 4)))
def test_any_table_is_answered(seed: int) -> None:
    """Random numbers in random fields: always a verdict, never an exception."""
    chance = random.Random(seed)
    groups = []
    for _ in range(chance.randint(1, 3)):
        drawn: dict[str, Any] = {}
        for f in fields(Group):
            if f.name not in ("label", "order", "dtype", "quantization", "knobs", "grammar", "streaming"):
                if chance.random() < 0.3:
                    drawn[f.name] = chance.choice([0, 1, 2, 1e-6, 1e9, -1, chance.random() * 100])
        groups.append(Group(**drawn))
    assert diagnose_table(Table(groups=tuple(groups))).findings


def thresholds() -> list[tuple[ModuleType, str]]:
    modules = [against_device, checks, contrast, placement, queue, step]
    modules += [import_module(f"{causes.__name__}.{found.name}") for found in iter_modules(causes.__path__)]
    named = [
        (module, name)
        for module in modules
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int | float) and f"\n{name} = " in inspect.getsource(module)
    ]
    return named if DRAWS > 100 else random.Random(0).sample(named, 8)


@pytest.mark.parametrize(("module", "name"), thresholds(), ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_no_threshold_holds_the_verdicts_by_itself(
    module: ModuleType, name: str, factor: float, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [(table, diagnose_table(table).cause) for _, table in tables(root, tmp_path)]
    monkeypatch.setattr(module, name, getattr(module, name) * factor)
    changed = sum(diagnose_table(table).cause != cause for table, cause in known)
    assert changed <= 0.05 * len(known)
