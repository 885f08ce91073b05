"""The rules, one small function a cause: evidence in; a finding, nothing, or what to measure out."""

from __future__ import annotations

from collections.abc import Callable

from phasetrace.advise.evidence import Evidence
from phasetrace.advise.rules import (
    batching,
    chunks,
    data,
    decode,
    prefill,
    prefix,
)
from phasetrace.model import Finding, NotEnoughData

Rule = Callable[[Evidence], Finding | NotEnoughData | None]

RULES: tuple[Rule, ...] = (
    batching.small_batch,
    chunks.small_prefill_chunk,
    data.data_defect,
    decode.long_output,
    decode.many_sequences,
    decode.no_kv_cache,
    prefill.long_prompt,
    prefill.padding,
    prefix.prefix_not_reused,
    prefill.warm_up,
)
