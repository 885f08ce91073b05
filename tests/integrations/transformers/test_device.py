"""Device times and copies, against a device that is as slow as the test wants it. Not verified on a GPU."""

from typing import Any

from phasetrace_transformers.device import POOL, DeviceClock, HostCopies


class Slow:
    """A device that has done the first `done` things it was given."""

    def __init__(self) -> None:
        self.given = self.done = 0

    def event(self) -> "Event":
        return Event(self)


class Event:
    def __init__(self, device: Slow) -> None:
        self.device = device

    def record(self) -> None:
        self.device.given += 1
        self.at = self.device.given

    def query(self) -> bool:
        return self.device.done >= self.at

    def elapsed_time(self, end: "Event") -> float:
        assert self.query() and end.query(), "asking earlier would wait"
        return float(end.at - self.at)

    def synchronize(self) -> None:
        raise AssertionError("never wait for a device")


class Pinned:
    """As much of a flat pinned tensor as is needed."""

    def __init__(self, cells: list[Any], shape: tuple[int, ...]) -> None:
        self.cells, self.shape = cells, shape

    def __getitem__(self, cut: slice) -> "Pinned":
        return Pinned(self.cells, (cut.stop - cut.start,))

    def view(self, *shape: int) -> "Pinned":
        return Pinned([], shape)

    def copy_(self, tensor: Any, non_blocking: bool) -> None:
        assert non_blocking
        self.cells = tensor.rows

    def tolist(self) -> Any:
        return self.cells


class OnDevice:
    def __init__(self, rows: list[list[int]]) -> None:
        self.rows, self.shape = rows, (len(rows), len(rows[0]))

    def tolist(self) -> None:
        raise AssertionError("never read from a device")


def test_device_times_come_when_the_device_is_done() -> None:
    device, told = Slow(), []
    clock = DeviceClock(device.event, lambda *args: told.append(args))
    for index in range(3):
        pair = clock.begin()
        assert pair is not None
        clock.end(9, index, pair)
    clock.poll()
    assert told == []
    device.done = 4
    clock.poll()
    assert told == [(9, 0, 1_000_000), (9, 1, 1_000_000)]
    device.done = 6
    clock.poll()
    assert [args[1] for args in told] == [0, 1, 2]


def test_a_device_far_behind_costs_no_more_events() -> None:
    device, told = Slow(), []
    clock = DeviceClock(device.event, lambda *args: told.append(args))
    for index in range(POOL):
        pair = clock.begin()
        assert pair is not None
        clock.end(1, index, pair)
    assert clock.begin() is None
    device.done = device.given
    clock.poll(limit=1)
    assert len(told) == 1
    assert clock.begin() is not None


def test_copies_are_told_when_they_have_come() -> None:
    device, told = Slow(), []
    copies = HostCopies(Pinned([], (8,)), device.event)
    assert copies.read(OnDevice([[1, 2, 3]]), told.append)
    copies.poll()
    assert told == []
    device.done = 1
    copies.poll()
    assert told == [[[1, 2, 3]]]


def test_a_tensor_too_large_stays_unknown_until_there_is_room() -> None:
    device, told = Slow(), []
    copies = HostCopies(Pinned([], (8,)), device.event)
    assert copies.read(OnDevice([[1] * 6]), told.append)
    assert not copies.read(OnDevice([[1] * 6]), told.append)
    device.done = 1
    copies.poll()
    assert copies.read(OnDevice([[1] * 6]), told.append)
