import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from phasetrace.model import Phase
from phasetrace.render.colors import LOOKS
from phasetrace.render.ink import Ink, apportion, cells, columns, flow


@given(st.text())
def test_nothing_said_can_be_obeyed_by_a_terminal(text: str) -> None:
    said = Ink().say(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for c in said)


@given(st.text())
def test_ascii_is_ascii(text: str) -> None:
    assert Ink(ascii=True).say(text).isascii()


def test_an_escape_sequence_is_shown() -> None:
    assert Ink(color=True).say("\x1b[31mred\x9b\u202e") == r"\x1b[31mred\x9b\u202e"


@given(st.text(), st.integers(20, 120))
def test_wrapped_lines_keep_to_the_width_but_for_single_words(text: str, width: int) -> None:
    for line in Ink(width).wrap(text, indent="  "):
        assert cells(line) <= width or " " not in line.strip()


def test_code_is_never_wrapped() -> None:
    code = "model.generate(" + "x" * 200 + ")\n\tindented"
    assert Ink(40).code(code) == ["model.generate(" + "x" * 200 + ")", "    indented"]


def test_columns_align_by_what_is_seen_and_leave_no_trailing_space() -> None:
    rows = [("a", "1", ""), ("漢字", "22", "x"), (("b", lambda text: f"\x1b[1m{text}\x1b[0m"), "333", "")]
    assert columns(rows, right=(1,)) == ["  a       1", "  漢字   22  x", "  \x1b[1mb\x1b[0m     333"]


@given(st.lists(st.integers(0, 10**12), max_size=9), st.integers(0, 200))
def test_a_bar_is_filled_exactly(amounts: list[int], width: int) -> None:
    given_ = apportion(amounts, width)
    assert sum(given_) == (width if sum(amounts) else 0)
    assert all(cell == 0 for cell, amount in zip(given_, amounts, strict=True) if amount == 0)


def test_every_phase_looks_different_in_each_way() -> None:
    assert set(LOOKS) == set(Phase)
    for way in ("hex", "fill", "letter", "xterm"):
        assert len({getattr(look, way) for look in LOOKS.values()}) == len(Phase)


def test_a_sparkline_shows_whatever_is_more_than_nothing() -> None:
    assert Ink().sparkline([0, 0.001, 1, 8]) == " ▁▁█"
    assert Ink(ascii=True).sparkline([0, 0.001, 8]) == " .@"
    assert Ink().sparkline([]) == ""


def test_width_is_what_a_terminal_takes() -> None:
    assert [cells(text) for text in ("a", "é", "e\u0301", "漢字", "नि", "µs")] == [1, 1, 1, 4, 1, 2]


@given(st.lists(st.text("abc ", min_size=1, max_size=30)), st.integers(1, 60))
def test_items_flow_in_order_and_keep_to_the_room_but_for_single_ones(items: list[str], room: int) -> None:
    lines = flow(items, room, "; ")
    assert "; ".join(lines).replace(";; ", "; ") == "; ".join(items)
    assert all(cells(line) <= room or line.removesuffix(";") in items for line in lines)
