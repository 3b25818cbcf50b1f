"""Members of the newest Java client, for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracle.java_classes import JavaMembers
from tests.real_groups.party import RELEASE


@pytest.fixture(scope="module")
def java() -> Iterator[JavaMembers]:
    with JavaMembers(RELEASE) as members:
        yield members
        assert members.failures == []
