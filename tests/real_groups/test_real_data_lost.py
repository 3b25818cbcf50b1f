"""Records that a real broker deleted before a group had committed past them."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.real_groups.followed import Followed
from tests.real_groups.party import commit_places, make_topics

pytestmark = pytest.mark.kafka


def test_what_is_deleted_before_a_group_has_read_it_is_lost_until_it_commits_past_it(
    bootstrap: str, unique: str
) -> None:
    make_topics(bootstrap, {unique: 1})
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(5_000):
        producer.produce(unique, value=str(number).encode(), partition=0)
    assert producer.flush(60) == 0
    group = f"{unique}-app"
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    place = TopicPartition(unique, 0)

    def commit(offset: int) -> None:
        commit_places(consumer, [TopicPartition(unique, 0, offset)])

    def told(followed: Followed) -> tuple[int | None, int | None, int | None, int | None]:
        row = followed.lag(group)[unique, 0]
        return row.committed_offset, row.log_start_offset, row.lag, row.lost_records

    with Followed(bootstrap, unique) as followed:
        commit(1_000)
        followed.round_until(lambda: f"g:{group}" in followed.rows and told(followed)[0] == 1_000)
        assert told(followed) == (1_000, 0, 4_000, 0)

        admin = AdminClient({"bootstrap.servers": bootstrap})
        for deleted in admin.delete_records([TopicPartition(unique, 0, 4_900)]).values():
            assert deleted.result().low_watermark == 4_900
        assert consumer.get_watermark_offsets(place, timeout=30) == (4_900, 5_000)
        followed.round()
        # The first round that sees it cannot know whether the group has committed since the round read its position.
        assert told(followed) == (1_000, 4_900, 100, 0)
        assert followed.health(group).findings == ()
        followed.round()
        assert told(followed) == (1_000, 4_900, 100, 3_900)
        health = followed.health(group)
        assert (health.lag_total, health.lag_max, health.lost_records) == (100, 100, 3_900)
        (finding,) = health.findings
        assert (finding.finding, finding.since) == ("data_lost", health.round_time)
        assert finding.detail == f"deleted before the group committed past it: {unique} 0 (3,900 offsets)"

        commit(4_950)
        followed.round_until(lambda: told(followed)[0] == 4_950)
        assert told(followed) == (4_950, 4_900, 50, 0)
        assert (followed.health(group).findings, followed.health(group).lost_records) == ((), 0)
    consumer.close()
