"""Until when a real broker's retention keeps what a group has not read, against the broker's own times of records."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.real_groups.followed import Followed, until
from tests.real_groups.party import commit_places, make_topics

pytestmark = pytest.mark.kafka

_RETENTION_MS = 3_600_000


def test_the_end_of_retention_of_the_oldest_unread_record_is_between_the_bounds(bootstrap: str, unique: str) -> None:
    appended, kept = f"{unique}-appended", f"{unique}-kept"
    settings = {"message.timestamp.type": "LogAppendTime", "retention.ms": str(_RETENTION_MS)}
    topics = [NewTopic(appended, 1, 1, config=settings), NewTopic(kept, 1, 1, config={"cleanup.policy": "compact"})]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics(topics).values():
        made.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    group = f"{unique}-app"

    def produce(topic: str) -> None:
        producer.produce(topic, b"value", key=b"key")
        assert producer.flush(30) == 0

    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})
    with Followed(bootstrap, unique) as followed:
        for topic in (appended, kept):
            produce(topic)
        until(lambda: _commits(reader, appended, kept))
        followed.round_until(lambda: f"g:{group}" in followed.rows)
        followed.round()
        for _ in range(3):
            produce(appended)
            produce(kept)
            followed.round()
        followed.round()
        row = followed.health(group)
    reader.assign([TopicPartition(appended, 0, 1)])
    found: list[int] = []

    def reads() -> bool:
        message = reader.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message.timestamp()[1])
        return bool(found)

    until(reads)
    reader.close()
    least, most = row.loses_data_in_seconds_min, row.loses_data_in_seconds_max
    assert least is not None
    assert most is not None
    assert row.round_time + 1_000 * least <= found[0] + _RETENTION_MS <= row.round_time + 1_000 * most
    # The bounds are two rounds apart, and a minute is taken off.
    assert most - least < 60 + 30
    assert (row.loses_data_topic, row.loses_data_partition, row.loses_data_by) == (appended, 0, "append_time")
    assert (row.loses_data_retention_seconds, row.loses_data_reason) == (_RETENTION_MS / 1_000, None)


def _commits(reader: Consumer, *topics: str) -> bool:
    offsets = [TopicPartition(topic, 0, 1) for topic in topics]
    try:
        return bool(reader.commit(offsets=offsets, asynchronous=False))
    except KafkaException:
        return False  # the broker's first group makes the offsets log


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

    def offsets_and_lag(followed: Followed) -> tuple[int | None, int | None, int | None, int | None]:
        row = followed.lag(group)[unique, 0]
        return row.committed_offset, row.log_start_offset, row.lag, row.lost_records

    with Followed(bootstrap, unique) as followed:
        commit(1_000)
        followed.round_until(lambda: f"g:{group}" in followed.rows and offsets_and_lag(followed)[0] == 1_000)
        assert offsets_and_lag(followed) == (1_000, 0, 4_000, 0)

        admin = AdminClient({"bootstrap.servers": bootstrap})
        for deleted in admin.delete_records([TopicPartition(unique, 0, 4_900)]).values():
            assert deleted.result().low_watermark == 4_900
        assert consumer.get_watermark_offsets(place, timeout=30) == (4_900, 5_000)
        followed.round()
        # The first round that sees it cannot know whether the group has committed since the round read its position.
        assert offsets_and_lag(followed) == (1_000, 4_900, 100, 0)
        assert followed.health(group).findings == ()
        followed.round()
        assert offsets_and_lag(followed) == (1_000, 4_900, 100, 3_900)
        health = followed.health(group)
        assert (health.lag_total, health.lag_max, health.lost_records) == (100, 100, 3_900)
        (finding,) = health.findings
        assert (finding.finding, finding.since) == ("data_lost", health.round_time)
        assert finding.detail == f"deleted before the group committed past it: {unique} 0 (3,900 offsets)"

        commit(4_950)
        followed.round_until(lambda: offsets_and_lag(followed)[0] == 4_950)
        assert offsets_and_lag(followed) == (4_950, 4_900, 50, 0)
        assert (followed.health(group).findings, followed.health(group).lost_records) == ((), 0)
    consumer.close()
