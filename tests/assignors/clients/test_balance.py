"""Parts of the sticky strategies' balancing, by hand."""

from __future__ import annotations

import pytest

from assignors.clients.sticky.balance import pairwise_differences


@pytest.mark.parametrize(
    ("sizes", "score"),
    [
        ([], 0),
        ([5], 0),
        ([4, 1, 2], 3 + 1 + 2),
        ([0, 0, 3, 3], 4 * 3),
        ([0, 2**31 - 1], 2**31 - 1),
        ([0, 2**31], -(2**31)),  # a Java int has overflowed
    ],
)
def test_the_score_is_the_sum_of_the_differences_of_all_pairs(sizes: list[int], score: int) -> None:
    assert pairwise_differences(sizes) == score
