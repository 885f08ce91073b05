from pathlib import Path

import pytest

from tests.supervise.runs import Runs


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Where this test records."""
    return Runs(tmp_path)
