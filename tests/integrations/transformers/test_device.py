"""Device times and copies, against a device that is as slow as the test wants it. Not verified on a GPU."""

from phasetrace_agent.device_clock import POOL, DeviceClock
from phasetrace_transformers.device import HostCopies
from tests.integrations.transformers.fakes import OnDevice, Pinned, Slow


def test_device_times_come_when_the_device_is_done() -> None:
    device, told = Slow(), []
    clock = DeviceClock(device.event, lambda *args: told.append(args))
    for index in range(3):
        pair = clock.begin()
        assert pair is not None
        clock.end(pair, 9, index)
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
        clock.end(pair, 1, index)
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


def test_a_lock_that_a_fork_left_held_hangs_nobody() -> None:
    device = Slow()
    clock = DeviceClock(device.event, lambda *_: None)
    copies = HostCopies(Pinned([], (8,)), device.event)
    clock._polling.acquire()
    copies._busy.acquire()
    clock.poll()
    assert not copies.read(OnDevice([[1]]), lambda rows: None)
    copies.poll()
