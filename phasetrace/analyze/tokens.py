"""Counts of tokens that follow from a request's sequences: what was read, what was computed in vain."""

from __future__ import annotations

from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Request


def new_prompt_tokens(request: Request) -> int | None:
    """Positions that prefill had to compute: prompt and padding, less what was cached."""
    prompt = request.prompt_tokens
    if prompt is None:
        return sum(chunk.tokens for chunk in request.prefill_chunks) or None
    return max(0, prompt + padding_tokens(request) - (request.cached_tokens or 0))


def padding_tokens(request: Request) -> int:
    """Padding in the prompts of a request's sequences."""
    return sum(sequence.padding_tokens or 0 for sequence in request.sequences)


def padded_decode_tokens(request: Request) -> int | None:
    """Rows that were computed after their own end of sequence, because the batch went on: steps x rows."""
    outputs = [sequence.output_tokens for sequence in request.sequences]
    known = [count for count in outputs if count is not None]
    if not known or len(known) != len(outputs):
        return None
    return sum(max(known) - count for count in known)


def decode_steps(request: Request, table: StepTable) -> int | None:
    """Steps after the one that gave the first token, or None where steps were not recorded."""
    rows = table.decode_rows(request)
    return None if rows is None else len(rows)
