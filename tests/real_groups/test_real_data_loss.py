"""Until when a real broker's retention keeps what a group has not read, against the broker's own times of records."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.real_groups.followed import Followed, until

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
