"""Tensors and models as far as this integration looks at them."""

from types import SimpleNamespace
from typing import Any


class FakeTensor:
    """A two-dimensional tensor; one that is not on the host refuses to be read."""

    def __init__(self, rows: list[list[Any]], device: str = "cpu", floating: bool = False) -> None:
        self.rows, self.floating = rows, floating
        self.shape = (len(rows), len(rows[0]))
        self.device = SimpleNamespace(type=device)

    def is_floating_point(self) -> bool:
        return self.floating

    def tolist(self) -> list[list[Any]]:
        assert self.device.type == "cpu", "reading from a device waits for it"
        return [list(row) for row in self.rows]


class Parameter:
    """A parameter's size and place."""

    def __init__(self, count: int, size: int = 2, dtype: str = "torch.bfloat16", device: str = "cpu") -> None:
        self.count, self.size, self.dtype = count, size, dtype
        self.device = SimpleNamespace(type=device)

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return self.size


class FakeModel:
    """A model with a configuration, a generation configuration and parameters."""

    def __init__(self, *parameters: Parameter, config: Any = None, **generation: Any) -> None:
        self._parameters = parameters
        self.config = config or SimpleNamespace(is_encoder_decoder=False)
        self.generation_config = SimpleNamespace(**generation)

    def parameters(self) -> tuple[Parameter, ...]:
        return self._parameters


class Slow:
    """A device that has done the first `done` things it was given."""

    def __init__(self) -> None:
        self.given = self.done = 0

    def event(self) -> "Event":
        return Event(self)


class Event:
    """A point in the device's work."""

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
    """A tensor that only a copy may read."""

    def __init__(self, rows: list[list[int]]) -> None:
        self.rows, self.shape = rows, (len(rows), len(rows[0]))
        self.device = SimpleNamespace(type="cuda")

    def is_floating_point(self) -> bool:
        return False

    def tolist(self) -> None:
        raise AssertionError("never read from a device")
