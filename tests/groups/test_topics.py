"""Partition counts that were in force since a time."""

from __future__ import annotations

import pytest

from streaming.groups.topics import CountSeen, TopicState, counts_from


@pytest.mark.parametrize(
    ("horizon", "counts"),
    [
        (5, {1, 2, 3}),  # before the first round: the first count is the best guess
        (10, {1, 2, 3}),
        (29, {1, 2, 3}),
        (30, {2, 3}),
        (59, {2, 3}),
        (60, {3}),
        (1_000, {3}),
    ],
)
def test_the_counts_since_a_time_include_the_one_in_force_at_it(horizon: int, counts: set[int]) -> None:
    seen = [CountSeen(1, 10, 20), CountSeen(2, 30, 40), CountSeen(3, 60, 70)]
    assert counts_from(TopicState(seen, 10), horizon) == counts
