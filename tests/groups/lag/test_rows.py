"""For which partitions there are rows."""

from __future__ import annotations

import pytest

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
