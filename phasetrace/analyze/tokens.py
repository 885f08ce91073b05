"""Counts of tokens that follow from a request's sequences: what was read, what was computed in vain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from phasetrace.analyze.step_table import StepTable
from phasetrace.model import Request


def prompts(request: Request) -> int:
    """Prompts in one call: its rows, less those that beams, `num_return_sequences` or `n` made of one."""
    stated = request.settings.get("batch_rows")
    if isinstance(stated, int) and stated > 0:
        return stated
    returned = request.settings.get("num_return_sequences") or request.settings.get("n")
    copies = returned if isinstance(returned, int) and returned > 0 else 1
    return max(1, len(request.sequences) // copies)


def new_prompt_tokens(request: Request) -> int | None:
    """Positions that prefill had to compute: prompt and padding, less what was cached."""
    prompt = request.prompt_tokens
    if prompt is None:
        return sum(chunk.tokens for chunk in request.prefill_chunks) or None
    return max(0, prompt + padding_tokens(request) - (request.cached_tokens or 0))


def padding_tokens(request: Request) -> int:
    """Padding in the prompts of a request's sequences."""
    return sum(sequence.padding_tokens or 0 for sequence in request.sequences)


def padding_if_sorted(requests: Sequence[Request]) -> int:
    """Padding that stays where the prompts of all are sorted by length, as many a batch as before."""
    prompts = iter(sorted(s.prompt_tokens or 0 for request in requests for s in request.sequences))
    return sum(_padding(list(islice(prompts, len(request.sequences)))) for request in requests)


def padding_to_longest(requests: Iterable[Request]) -> int:
    """Padding that stays where each batch is padded to its own longest prompt, and no further."""
    return sum(_padding([s.prompt_tokens or 0 for s in request.sequences]) for request in requests)


def _padding(prompts: Sequence[int]) -> int:
    return max(prompts, default=0) * len(prompts) - sum(prompts)


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
