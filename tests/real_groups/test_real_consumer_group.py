"""A real group of the new protocol, followed in a real broker's log, compared with the broker's own API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, TopicPartition

from streaming.groups import Rows
from streaming.groups.modern.consumer_group import replay
from streaming.groups.modern.group import Ended, ModernDecision, ModernGroup, state_of
from streaming.offsets_log import (
    Compactor,
    OtherKey,
    Rejected,
    UnknownVersion,
    decode_key,
    decode_modern,
    partition_for,
)
from streaming.records import IdPartitions, TopicObservation
from tests.groups.build import Life, make_observation, make_topic
from tests.real_groups.followed import until

pytestmark = pytest.mark.kafka

LOG = "__consumer_offsets"


class Watched:
    """One group's log, read continuously: through the codec into the state machine, and into the whole core."""

    def __init__(self, bootstrap: str, group_id: str) -> None:
        self.group: ModernGroup | None = None
        self.said: list[ModernDecision | Ended] = []
        self.core = Life()
        self.position = 0
        self._group_id = group_id
        self._reader = KafkaConsumer(
            bootstrap_servers=bootstrap,
            enable_auto_commit=False,
            exclude_internal_topics=False,
            isolation_level="read_committed",
        )
        self._partitions = len(self._reader.partitions_for_topic(LOG))
        place = TopicPartition(LOG, partition_for(group_id, self._partitions))
        self._place = place
        self._reader.assign([place])
        self._reader.seek_to_beginning(place)

    def read_on(self) -> None:
        for records in self._reader.poll(timeout_ms=200).values():
            codec = Compactor(
                self._place.partition, self._partitions, (), lambda name: name == self._group_id, everything
            )
            for record in records:
                codec.add(record.offset, record.timestamp, record.key, record.value)
                self.position = record.offset + 1
                key = decode_key(record.key)
                if isinstance(key, OtherKey) and key.group == self._group_id:
                    item = decode_modern(record.offset, record.timestamp, key, record.value, record.partition)
                    assert not isinstance(item, Rejected | UnknownVersion), item
                    self.group, word = replay(self.group, item, born=True)
                    if word is not None:
                        self.said.append(word)
            assert codec.unreadable() == []
            self.core.take(*(item for _, inputs in codec.groups() for item in inputs))

    def round(self, *topics: TopicObservation) -> Rows:
        """A round with the group's topics and everything read so far."""
        return self.core.take(make_observation(self.position, *topics, group_type="consumer"))

    def close(self) -> None:
        self._reader.close()


@pytest.fixture
def topic(bootstrap: str, unique: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(unique, num_partitions=6, replication_factor=1)]).values():
        created.result()
    return unique


@pytest.fixture
def join(bootstrap: str, topic: str) -> Iterator[Callable[[str], Consumer]]:
    members = []

    def join_(client_id: str) -> Consumer:
        member = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"{topic}-ü",
                "client.id": client_id,
                "group.protocol": "consumer",
                "enable.auto.commit": False,
            }
        )
        member.subscribe([topic])
        members.append(member)
        return member

    yield join_
    for member in members:
        member.close()


def test_members_owners_and_epochs_are_those_that_the_broker_tells(
    bootstrap: str, topic: str, join: Callable[[str], Consumer]
) -> None:
    group_id = f"{topic}-ü"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    first = join("one")
    until(lambda: len(first.assignment()) == 6, partial(first.poll, 0.1))
    watched = Watched(bootstrap, group_id)
    second = join("two")
    polled = partial(first.poll, 0.1), partial(second.poll, 0.1)
    until(lambda: len(first.assignment()) == len(second.assignment()) == 3, *polled)
    until(lambda: watched.read_on() or (watched.group is not None and at_rest(watched.group, 2)), *polled)

    group = watched.group
    description = admin.describe_consumer_groups([group_id])[group_id].result()
    # librdkafka prints ids in plain base64, Kafka in the URL-safe variant.
    topic_id = str(admin.describe_topics(TopicCollection([topic]))[topic].result().topic_id)
    topic_id = topic_id.translate(str.maketrans("+/", "-_")).rstrip("=")
    told = {member.member_id: member for member in description.members}
    assert state_of(group).upper() == description.state.name
    assert set(group.members) == set(told)
    for member_id, member in group.members.items():
        assert (member.client_id, member.client_host) == (told[member_id].client_id, told[member_id].host)
        assert member.instance_id == told[member_id].group_instance_id
        assert member.topics == (topic,)
        assert member.classic_protocols is None
        owned = {(topic_id, place.partition) for place in told[member_id].assignment.topic_partitions}
        assert places(group.currents[member_id].partitions) == owned
        assert places(group.targets[member_id].partitions) == owned
    decisions = [word for word in watched.said if isinstance(word, ModernDecision)]
    assert len(decisions) == len(watched.said)
    assert [decision.epoch for decision in decisions] == sorted({decision.epoch for decision in decisions})
    newest = decisions[-1]
    assert newest.epoch == group.decided.epoch == group.epoch
    # Three of six partitions moved, all of them from the first member to the second.
    start = next(decision for decision in decisions if sum(map(len, map(places, decision.targets.values()))) == 6)
    (only,) = start.targets
    assert places(start.targets[only]) - places(newest.targets[only]) == set().union(
        *(places(target) for member_id, target in newest.targets.items() if member_id != only)
    )

    rows = watched.round(make_topic(topic, 6, topic_id=topic_id))
    assert {(row.partition, row.member_id, row.client_id) for row in rows.lag} == {
        (place.partition, member_id, member.client_id)
        for member_id, member in told.items()
        for place in member.assignment.topic_partitions
    }
    assert {
        (row.member_id, of_topic.topic, number)
        for row in rows.members
        if row.decision == newest.record
        for of_topic in row.partitions or ()
        for number in of_topic.partitions
    } == {(row.member_id, topic, row.partition) for row in rows.lag}
    # The cost of a rebalance is known later, and gets a second row.
    churn = [row for row in watched.core.rows.rebalance_churn if row.revision == 1]
    assert [row.decision for row in churn] == [decision.record for decision in decisions]
    assert sum(row.partitions_moved or 0 for row in churn) == 3
    # The coordinator may learn of a topic only after its first member has joined.
    causes = [found for row in churn for found in row.causes or ()]
    told_of = {(found.before, found.after) for found in causes if found.cause == "partitions_changed"}
    assert told_of <= {("0", "6")}
    assert [found.cause for found in causes if found.cause != "partitions_changed"] == ["member_joined"] * 2
    assert {member for row in churn for found in row.causes or () for member in found.members} == set(told)
    assert [row.decision for row in rows.drift] == [decision.record for decision in decisions]
    assert "drifted" not in {row.verdict for row in rows.drift}
    assert (rows.drift[-1].verdict, rows.drift[-1].reason) == ("identical", None)
    (health,) = rows.group_health
    assert (health.state, health.members, health.assigned_partitions, health.findings) == ("Stable", 2, 6, ())

    second.close()
    first.close()
    delete = admin.delete_consumer_groups
    until(lambda: not admin.describe_consumer_groups([group_id])[group_id].result().members)
    delete([group_id])[group_id].result()
    until(lambda: watched.read_on() or watched.group is None)
    watched.close()
    assert isinstance(watched.said[-1], Ended)


def everything(_: str) -> bool:
    return True


def at_rest(group: ModernGroup, members: int) -> bool:
    return len(group.members) == members and state_of(group) == "Stable"


def places(partitions: IdPartitions) -> set[tuple[str, int]]:
    return {(topic_id, number) for topic_id, numbers in partitions for number in numbers}
