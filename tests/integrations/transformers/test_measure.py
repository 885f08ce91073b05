"""The bench waits for the device that it measures."""

from types import SimpleNamespace
from typing import Any

import pytest

from phasetrace_transformers.measure import Machine


def torch(**kinds: Any) -> Any:
    cuda = SimpleNamespace(is_available=lambda: False)
    return SimpleNamespace(float32="float32", bfloat16="bfloat16", **{"cuda": cuda, **kinds})


@pytest.mark.parametrize(
    "name, asked", [("cuda:1", ("cuda:1",)), ("xpu", ("xpu",)), ("mps", ())], ids=["cuda", "xpu", "mps"]
)
def test_it_is_waited_for(name: str, asked: tuple[str, ...]) -> None:
    waited: list[tuple[str, ...]] = []
    kind = SimpleNamespace(synchronize=lambda *args: waited.append(args))
    Machine(torch(**{name.split(":")[0]: kind}), name, None).finish()
    assert waited == [asked]


def test_the_named_device_says_what_it_is() -> None:
    kind = SimpleNamespace(get_device_name=lambda name: "the second" if name == "cuda:1" else "the first")
    assert Machine(torch(cuda=kind), "cuda:1", None).called() == "the second"


def test_the_host_is_not_waited_for() -> None:
    machine = Machine(torch(), None, None)
    machine.finish()
    assert (machine.called(), machine.dtype) == ("cpu", "float32")
