"""The causes, one module each: its words, its thresholds, and what shows it in recorded steps and in a table.

A module that is put here, with a `RULE`, is asked; nothing else has to know of it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from phasetrace.advise.rule import Rule
from phasetrace.semconv import Cause

ORDER = list(Cause)  # of a request's life
FOUND: list[Rule] = [import_module(f"{__name__}.{module.name}").RULE for module in iter_modules(__path__)]
RULES = tuple(sorted(FOUND, key=lambda rule: ORDER.index(rule.cause)))
