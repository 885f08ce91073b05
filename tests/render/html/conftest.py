"""The page's parts as the package holds them."""

import pytest

from phasetrace.cli import page
from phasetrace.model import Diagnosis
from phasetrace.render.html import Parts
from tests.render.html import scenes


@pytest.fixture(scope="session")
def parts() -> Parts:
    """Code, style and charts."""
    return page.parts()


@pytest.fixture(scope="session")
def served() -> Diagnosis:
    """What is said of an engine that serves 24 requests."""
    return scenes.diagnosis(scenes.served())
