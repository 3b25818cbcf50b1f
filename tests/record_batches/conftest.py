from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.record_batches.readers import of_readers


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close the consumers of a test's readers: their threads would look for a broker that is gone, and log it."""
    yield
    while of_readers:
        of_readers.pop().close()
