"""A number with its noun."""

from __future__ import annotations

import pytest

from streaming.plurals import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 partitions"), (1, "1 partition"), (2, "2 partitions"), (12_400, "12,400 partitions")]
)
def test_only_one_of_something_is_singular_and_thousands_are_parted(number: int, text: str) -> None:
    assert counted(number, "partition") == text
