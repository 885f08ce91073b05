"""The rules for tables, one small function a cause: a view in; a candidate or nothing out."""

from __future__ import annotations

from phasetrace.advise.table.answer import Rule
from phasetrace.advise.table.rules import (
    faults,
    load,
    prefill,
    reading,
)

RULES: tuple[Rule, ...] = (
    prefill.warm_up,
    prefill.long_prompt,
    reading.prefix_not_reused,
    reading.small_prefill_chunk,
    reading.padding,
    load.long_output,
    load.small_batch,
    faults.no_kv_cache,
    load.many_sequences,
)
