"""The offsets log of a real broker with real groups, decoded and compared with the broker's own API."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from streaming.offsets_log import Compactor
from streaming.records import CommitWindow, GroupInput, MembershipRecord, PartitionInput

pytestmark = pytest.mark.kafka

LOG = "__consumer_offsets"


def decoded_log(bootstrap: str, watched: str) -> tuple[dict[str, list[GroupInput]], list[PartitionInput]]:
    """All inputs from one group's log, each partition through its own compactor."""
    reader = KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        exclude_internal_topics=False,
    )
    try:
        count = len(reader.partitions_for_topic(LOG))
        partitions = [TopicPartition(LOG, number) for number in range(count)]
        reader.assign(partitions)
        ends = reader.end_offsets(partitions)
        compactors = {
            place: Compactor(place.partition, count, (), lambda name: name == watched, lambda _: True)
            for place in partitions
        }
        reader.seek_to_beginning(*partitions)
        while any(reader.position(place) < ends[place] for place in partitions):
            for place, records in reader.poll(timeout_ms=500).items():
                for record in records:
                    compactors[place].add(record.offset, record.timestamp, record.key, record.value)
    finally:
        reader.close()
    groups: dict[str, list[GroupInput]] = {}
    unreadable: list[PartitionInput] = []
    for compactor in compactors.values():
        groups.update(compactor.groups())
        unreadable.extend(compactor.unreadable())
    return groups, unreadable


def test_a_real_group_is_decoded_as_the_broker_tells_it(bootstrap: str, unique: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    topic = f"{unique}.orders"
    admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=1)])
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for number in range(30):
        producer.send(topic, b"x", partition=number % 3).get(timeout=30)
    producer.close()
    group = f"{unique}-ü🦊"
    member = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        client_id="it's me",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        seen = 0
        while seen < 30:
            seen += sum(map(len, member.poll(timeout_ms=500).values()))
            if seen:
                member.commit()
        told = admin.list_group_offsets(group)[group]
        groups, unreadable = decoded_log(bootstrap, group)
        assert not unreadable
        last = {(item.topic, item.partition): item.offset for item in groups[group] if isinstance(item, CommitWindow)}
        assert last == {(place.topic, place.partition): meta.offset for place, meta in told.items()}
        assert sum(last.values()) == 30
        record = [item for item in groups[group] if isinstance(item, MembershipRecord)][-1]
        assert record.protocol_type == "consumer"
        (seen_member,) = record.members
        assert seen_member.undecodable is None
        assert seen_member.client_id == "it's me"
        assert seen_member.topics == (topic,)
        assert seen_member.assigned is not None
        assert {(t, p) for t, ps in seen_member.assigned for p in ps} == {
            (place.topic, place.partition) for place in member.assignment()
        }
        assert record.leader == seen_member.member_id
    finally:
        member.close()
        admin.close()
