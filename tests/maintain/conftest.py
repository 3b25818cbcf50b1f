"""The lake of one test, and who writes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.tables import (
    DeltaLake,
)
from tests.maintain.build import (
    Writer,
    new_lake,
)


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return new_lake(tmp_path)


@pytest.fixture
def writer(lake: DeltaLake) -> Writer:
    return Writer(lake)
