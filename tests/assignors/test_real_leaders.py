"""Groups of real librdkafka and kafka-python members: what their leaders wrote is what the candidates compute.

The members' subscriptions and the leader's assignment are read from the broker's own `__consumer_offsets`, so
the bytes that `recognise` goes by are real ones too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from assignors import (
    CannotTell,
    Group,
    LeaderWouldFail,
    Subscription,
    assign,
    from_topics,
    owners,
    recognise,
    same,
    topics_without_metadata,
)
from streaming.groups.inputs import MembershipRecord
from streaming.offsets_log import GroupKey, decode_key, decode_membership

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = pytest.mark.kafka

COUNTS = {"a": 5, "b": 3, "c-10": 4, "c-2": 11}
ALL = tuple(COUNTS)
SETTLED_S = 90


@dataclass(frozen=True)
class Joins:
    """One member to start: its instance id, its topics."""

    instance: str | None
    topics: tuple[str, ...] = ALL


# In "static", "m!" comes after "m" by instance id, and its member id ("m!-...") before that of "m" ("m-...").
STORIES = {
    "dynamic": (Joins(None), Joins(None), Joins(None)),
    "different": (Joins(None), Joins(None, ("a", "c-2")), Joins(None, ("b", "c-10", "a"))),
    "static": (Joins("m"), Joins("m!"), Joins("b")),
    "mixed": (Joins("0"), Joins(None), Joins("zz"), Joins(None)),
}
# kafka-python's own roundrobin raises on different subscriptions: such a group never gets an assignment.
RUNS = [
    (library, strategy, story)
    for library in ("librdkafka", "kafka-python")
    for strategy in ("range", "roundrobin")
    for story in STORIES
    if (library, strategy, story) != ("kafka-python", "roundrobin", "different")
]


def test_every_generation_of_real_groups_is_what_a_candidate_of_its_library_computes(
    bootstrap: str, unique: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(f"{unique}-{topic}", count, 1) for topic, count in COUNTS.items()])
    admin.close()
    groups = {f"{unique}-{library}-{strategy}-{story}": (library, strategy, story) for library, strategy, story in RUNS}
    stop = threading.Event()
    threads = [
        threading.Thread(target=_MEMBERS[library], args=(bootstrap, unique, group, strategy, joins, stop), daemon=True)
        for group, (library, strategy, story) in groups.items()
        for joins in STORIES[story]
    ]
    with offsets_log(bootstrap) as log:
        for thread in threads:
            thread.start()
        try:
            records = _until_settled(log, {group: len(STORIES[story]) for group, (_, _, story) in groups.items()})
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)

    counts = {f"{unique}-{topic}": count for topic, count in COUNTS.items()}
    for group, (library, strategy, _) in groups.items():
        for record in records[group]:
            assert record.protocol == strategy
            assert library in _matching(record, counts), (group, record)


def _matching(record: MembershipRecord, counts: dict[str, int]) -> set[str]:
    """Libraries whose candidates compute exactly what the record holds."""
    members = tuple(
        Subscription(m.member_id, m.topics or (), m.owned, m.generation, m.group_instance_id, m.rack, m.user_data)
        for m in record.members
    )
    actual = from_topics({m.member_id: m.assigned or () for m in record.members})
    leader = next(m for m in record.members if m.member_id == record.leader)
    found = set()
    strategy = record.protocol or ""
    candidates = recognise(
        strategy, version=leader.subscription_version, user_data=leader.user_data, client_id=leader.client_id
    )
    for library in candidates:
        # A leader that lacked a topic's metadata gave nobody any of it.
        unknown = topics_without_metadata(library, leader.topics or (), counts) - owners(actual).keys()
        known = {topic: count for topic, count in counts.items() if topic not in unknown}
        try:
            if same(assign(strategy, Group(members, known), library), actual):
                found.add(library.name)
        except (CannotTell, LeaderWouldFail):
            continue
    return found


@contextmanager
def offsets_log(bootstrap: str) -> Iterator[KafkaConsumer]:
    log = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, exclude_internal_topics=False)
    try:
        name = "__consumer_offsets"
        while not (partitions := log.partitions_for_topic(name)):  # created by the first group there is
            with_group = KafkaConsumer(bootstrap_servers=bootstrap, group_id="first")
            with_group.assign([TopicPartition(name, 0)])
            with_group.committed(TopicPartition(name, 0))
            with_group.close()
        log.assign([TopicPartition(name, partition) for partition in partitions])
        log.seek_to_end()
        for partition in log.assignment():
            log.position(partition)
        yield log
    finally:
        log.close()


def _until_settled(log: KafkaConsumer, sizes: dict[str, int]) -> dict[str, list[MembershipRecord]]:
    """All records with members of these groups, until each group has had one with all its members."""
    records: dict[str, list[MembershipRecord]] = {group: [] for group in sizes}
    deadline = time.monotonic() + SETTLED_S
    waiting = set(sizes)
    while waiting:
        assert time.monotonic() < deadline, f"never complete: {waiting}"
        for batch in log.poll(500).values():
            for item in batch:
                key = decode_key(item.key)
                if not isinstance(key, GroupKey) or key.group not in sizes or item.value is None:
                    continue
                record = decode_membership(item.offset, item.timestamp, item.value)
                assert isinstance(record, MembershipRecord)
                if record.members:
                    records[key.group].append(record)
                    if len(record.members) == sizes[key.group]:
                        waiting.discard(key.group)
    return records


def _librdkafka(bootstrap: str, unique: str, group: str, strategy: str, joins: Joins, stop: threading.Event) -> None:
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": 30_000,
    }
    if joins.instance is not None:
        settings["group.instance.id"] = joins.instance
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([f"{unique}-{topic}" for topic in joins.topics])
    while not stop.is_set():
        consumer.poll(0.1)
    consumer.close()


def _kafka_python(bootstrap: str, unique: str, group: str, strategy: str, joins: Joins, stop: threading.Event) -> None:
    assignor = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}[strategy]
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=joins.instance,
        partition_assignment_strategy=[assignor],
        session_timeout_ms=30_000,
        max_poll_interval_ms=60_000,
    )
    consumer.subscribe([f"{unique}-{topic}" for topic in joins.topics])
    while not stop.is_set():
        consumer.poll(100)
    consumer.close(autocommit=False)


_MEMBERS: dict[str, Callable[[str, str, str, str, Joins, threading.Event], None]] = {
    "librdkafka": _librdkafka,
    "kafka-python": _kafka_python,
}
