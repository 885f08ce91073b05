"""What waits is bounded by bytes; the oldest makes room, and is counted."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from phasetrace.emit.backlog import Backlog, Part
from phasetrace.mapping import ResourceSpans, Span

AT_ONCE = 0.0


def part(spans: int, name: str = "", **attributes: list[int] | str) -> Part:
    made = [Span("a" * 32, "b" * 16, None, name, 0, 1, attributes=dict(attributes)) for _ in range(spans)]
    return Part([ResourceSpans({}, made)])


@given(st.lists(st.integers(1, 9)), st.integers(1, 20))
def test_nothing_is_lost_silently_and_the_newest_are_kept(sizes: list[int], most: int) -> None:
    backlog = Backlog(most * part(1).nbytes)
    parts = [part(size) for size in sizes]
    dropped = sum(map(backlog.put, parts))
    backlog.end()
    kept = []
    while (taken := backlog.take(AT_ONCE)) is not None:
        kept.append(taken)
    assert kept == parts[len(parts) - len(kept) :]
    assert dropped + sum(map(len, kept)) == sum(sizes)
    assert sum(map(len, kept)) <= max(most, sizes[-1] if sizes else 0)
    assert not kept or len(kept) == len(sizes) or dropped


def test_what_was_taken_last_counts_until_the_next_is_asked_for() -> None:
    backlog = Backlog(2 * part(1).nbytes)
    first, second, third, fourth = (part(1, name=str(n)) for n in range(4))
    assert backlog.put(first) == backlog.put(second) == 0
    assert backlog.take(AT_ONCE) is first
    assert backlog.put(third) == 1  # the second made room
    assert backlog.take(AT_ONCE) is third
    assert backlog.put(fourth) == 0


def test_a_part_beyond_the_limit_waits_alone() -> None:
    backlog = Backlog(1)
    small, large = part(1), part(1000)
    assert (backlog.put(small), backlog.put(large)) == (0, 1)
    assert backlog.take(AT_ONCE) is large


def test_without_a_limit_all_wait() -> None:
    backlog = Backlog(None)
    assert sum(backlog.put(part(1)) for _ in range(100)) == 0


def test_arrays_and_long_texts_weigh() -> None:
    plain = part(1).nbytes
    assert part(1, waits=list(range(1000))).nbytes >= plain + 8000
    assert part(1, text="x" * 100_000).nbytes >= plain + 100_000
    assert part(1, name="x" * 100_000).nbytes >= plain + 100_000


def test_nothing_came_and_nothing_will() -> None:
    backlog = Backlog(None)
    waited = backlog.take(AT_ONCE)
    assert waited is not None and len(waited) == 0
    threading.Timer(0.01, backlog.end).start()
    assert backlog.take(60.0) is None
