"""What batches would compute in vain if they were made up in another way."""

from hypothesis import given
from hypothesis import strategies as st

from phasetrace.analyze.tokens import padding_if_sorted, padding_to_longest, padding_tokens
from phasetrace.model import Request, Sequence
from tests import builders

BATCHES = st.integers(1, 8).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(1, 2_000), min_size=size, max_size=size), min_size=1, max_size=6
    )
)


def batch(prompts: list[int], longest: int | None = None) -> Request:
    """A call with these prompts, padded to the longest of them, or further."""
    to = longest or max(prompts)
    return builders.request(sequences=tuple(Sequence(n, to - n, 8) for n in prompts))


def test_prompts_of_like_length_pad_nothing() -> None:
    assert padding_if_sorted([batch([300, 10, 10]), batch([10, 300, 300])]) == 0
    assert padding_if_sorted([batch([300, 10]), batch([10, 10])]) == 290


def test_padding_to_a_fixed_length_goes_where_the_longest_decides() -> None:
    assert padding_to_longest([batch([20, 12], longest=512), batch([7], longest=512)]) == 8


def test_without_sequences_there_is_no_padding() -> None:
    assert padding_if_sorted([builders.request(sequences=())]) == padding_to_longest([]) == 0


@given(BATCHES)
def test_sorting_never_pads_more(prompts: list[list[int]]) -> None:
    batches = [batch(row) for row in prompts]
    now = sum(padding_tokens(call) for call in batches)
    assert 0 <= padding_if_sorted(batches) <= now == padding_to_longest(batches)
