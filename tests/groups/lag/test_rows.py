"""For which partitions there are rows."""

from __future__ import annotations

import pytest

from streaming.groups.lag.rows import move_unread
from streaming.groups.state import GroupState
from streaming.records import TopicObservation
from tests.groups.build import Life, even, make_observation, make_record, make_topic


@pytest.mark.parametrize("unseen", [(), (make_topic("y", None),), (make_topic("y", 0),)])
def test_a_subscribed_topic_without_partitions_has_no_rows(unseen: tuple[TopicObservation, ...]) -> None:
    life = Life()
    rows = life.take(
        make_record(5, even("x", 2, "a", topics=("x", "y"))), make_observation(10, make_topic("x", 2), *unseen)
    )
    assert [(row.topic, row.partition) for row in rows.lag] == [("x", 0), ("x", 1)]


def test_a_subscribed_partition_without_a_commit_or_an_owner_has_a_row() -> None:
    life = Life()
    rows = life.take(make_record(5, even("x", 2, "a")), make_observation(10, make_topic("x", 3)))
    assert [(row.partition, row.lag_status, row.member_id) for row in rows.lag] == [
        (0, "no_commit", "a"),
        (1, "no_commit", "a"),
        (2, "no_commit", None),
    ]


@pytest.mark.parametrize(
    ("before", "by", "after"),
    [
        ((5_000, 5_500), -3_000, (2_000, 2_500)),
        ((5_000, 5_500), -9_000, (0, 0)),
        ((0, 0), 3_000, (3_000, 3_000)),
        ((-1, -1), 3_000, (-1, -1)),
    ],
)
def test_the_times_of_rounds_are_moved_by_the_error_of_a_clock_but_not_to_before_all_times(
    before: tuple[int, int], by: int, after: tuple[int, int]
) -> None:
    state = GroupState(round_opened=before[0], round_closed=before[1])
    move_unread(state, by)
    assert (state.round_opened, state.round_closed) == after
