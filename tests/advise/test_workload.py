"""The shape of the load, as the application asks."""

from phasetrace.advise.workload import workload
from phasetrace.analyze import breakdown
from tests.advise import scenes


def test_warm_up_in_the_midst_of_a_loop_is_no_pause_of_it() -> None:
    first, *others = breakdown(scenes.small_batch(24)).requests
    cold, rest = others[:7], (first, *others[7:])
    load, blind = workload(rest, cold), workload(rest)
    assert load is not None and blind is not None
    assert load.loop and load.requests == len(rest)
    assert not blind.loop


def test_warm_up_alone_has_no_load() -> None:
    assert workload((), breakdown(scenes.small_batch(4)).requests) is None
