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
