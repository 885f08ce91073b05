"""Fixtures for what runs in the application."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conftest import OtherPython
from tests.integrations.agent import Run


def _python(others: Sequence[OtherPython], version: tuple[int, int]) -> Path:
    for other in others:
        if other.version == version:
            return other.path
    pytest.skip("Python {}.{} is not on this machine".format(*version))


@pytest.fixture(params=[(3, minor) for minor in range(9, 15)], ids=lambda version: "{}.{}".format(*version))
def recorded(request: pytest.FixtureRequest, other_pythons: Sequence[OtherPython], tmp_path: Path) -> Run:
    """A run with each Python that can be recorded in turn."""
    return Run(tmp_path, _python(other_pythons, request.param))


@pytest.fixture(params=[(2, 7), (3, 8)], ids=lambda version: "{}.{}".format(*version))
def untouched(request: pytest.FixtureRequest, other_pythons: Sequence[OtherPython], tmp_path: Path) -> Run:
    """A run with each Python that is too old to be recorded."""
    return Run(tmp_path, _python(other_pythons, request.param))
