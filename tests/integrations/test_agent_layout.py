"""Every record comes back as it was written."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phasetrace_agent import layout
from phasetrace_agent.recorder import Recorder
from phasetrace_agent.spool import Spool
from tests.integrations.agent import read_spool

U8, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (8, 32, 64))
IDS = st.lists(U32, max_size=20)
PAIRS = st.lists(st.tuples(U32, U32), max_size=20)


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    segments = draw(st.lists(st.tuples(U8, U64), max_size=20))
    return {
        "stream": draw(U32), "index": draw(U32), "begin": draw(U64),
        "codes": [code for code, _ in segments], "ends": [end for _, end in segments],
        "joined": draw(IDS), "left": draw(IDS), "scheduled": draw(PAIRS), "yielded": draw(PAIRS),
        "number": draw(st.integers(0, 2**16 - 1)),
    }  # fmt: skip


@given(steps())
def test_a_step(step: dict[str, Any]) -> None:
    assert layout.decode_step(layout.encode_step(**step) + b"\0" * 7) == step


@given(st.lists(steps(), min_size=1, max_size=20))
def test_a_step_packed_in_place_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, written: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    recorder = Recorder(Spool(str(folder)))
    for step in written:
        recorder.step(**step)
    found = [layout.decode_step(payload) for kind, payload in read_spool(folder) if kind == layout.STEP]
    assert found == written


@given(U32, U32, U64, st.lists(U8, min_size=4, max_size=4), st.lists(U64, min_size=4, max_size=4), U32)
def test_a_plain_step_is_a_step_that_changed_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    stream: int, index: int, begin: int, codes: list[int], ends: list[int], number: int,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("spool")
    recorder = Recorder(Spool(str(folder)))
    recorder.plain_step(stream, index, begin, int.from_bytes(codes, "little"), *ends, number)
    recorder.step(stream, index, begin, codes, ends, number=number)
    one, other = (layout.decode_step(payload) for kind, payload in read_spool(folder) if kind == layout.STEP)
    assert one == other


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(U32, U32, U64, st.dictionaries(st.text(), JSON, max_size=5))
def test_a_blob(ident: int, scope: int, time: int, data: dict[str, Any]) -> None:
    payload = layout.encode_blob(ident, scope, time, data)
    assert layout.decode_blob(payload + b"\0" * 7) == (ident, scope, time, data)


@given(U32, U32, U64)
def test_a_mark_and_a_device_time(first: int, second: int, third: int) -> None:
    assert layout.decode_mark(layout.encode_mark(first, second, third) + b"\0") == (first, second, third)
    assert layout.decode_device(layout.encode_device(first, second, third) + b"\0") == (first, second, third)


@given(U64, U64)
def test_a_clock(monotonic: int, wall: int) -> None:
    assert layout.decode_clock(layout.encode_clock(monotonic, wall)) == (monotonic, wall)


@given(U32, U32, st.lists(st.tuples(U64, U32), max_size=50))
def test_a_prefix(request: int, sequence: int, chunks: list[tuple[int, int]]) -> None:
    hashes, lengths = tuple(h for h, _ in chunks), tuple(n for _, n in chunks)
    payload = layout.encode_prefix(request, sequence, hashes, lengths)
    assert layout.decode_prefix(payload + b"\0" * 4) == (request, sequence, hashes, lengths)


@given(st.tuples(U32, U32, U64, U64, U64))
def test_a_pause(values: tuple[int, int, int, int, int]) -> None:
    assert layout.decode_pause(layout.encode_pause(*values)) == values


@given(st.tuples(U32, U64), st.sampled_from(layout.ENDINGS), st.tuples(U32, U32), st.integers(-1, 2**31 - 1))
def test_an_ending_says_what_a_last_word_would(
    known: tuple[int, int], ending: str, tokens: tuple[int, int], last_step: int
) -> None:
    request, time = known
    payload = layout.encode_ended(request, time, ending, *tokens, 16, 32, last_step)
    told = {"reason": ending, "cached": 48, "cached_external": 32, "last_step": last_step}
    row = {"prompt": tokens[0], "padding": 0, "output": tokens[1], "reason": ending}
    assert layout.decode_ended(payload + b"\0" * 7) == (request, time, {"sequences": [row], **told})


@given(U64, st.integers(1, 10**12), st.sampled_from(["ENOSPC", "too-large", "cap"]))
def test_a_loss_on_a_full_disk(process: int, count: int, why: str) -> None:
    assert layout.parse_lost(layout.lost_name(process, count, why)) == (process, count, why)
