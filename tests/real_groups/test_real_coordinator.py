"""Targets computed by a real coordinator, from its own log: each equals ours from the one before.

The classes are compared elsewhere (tests/assignors/brokers/test_fuzz.py); this test covers their surroundings: the
order in which the coordinator passes members and topics (`names_in_hash_order`), and the previous target that it uses.
"""

from __future__ import annotations

import json
import random
from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, TopicPartition

from assignors import from_topics, same
from assignors.brokers import ServerGroup, ServerMember, ServerTopic, assign_on_server, names_in_hash_order, uuid_of
from assignors.jsonl import write_server_line
from streaming.groups.modern.group import ModernDecision, ModernGroup
from streaming.groups.modern.replay import replay
from streaming.groups.modern.rules import in_every_order
from streaming.offsets_log import OtherKey, Rejected, UnknownVersion, decode_key, decode_modern, partition_for
from tests.real_groups.followed import until

pytestmark = [pytest.mark.kafka, pytest.mark.turn(6)]

LOG = "__consumer_offsets"
BROKER = "4.3.1"
TOPICS = 14


def test_every_target_of_a_real_group_is_what_we_compute(bootstrap: str, unique: str) -> None:
    chance = random.Random(unique)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [f"{unique}-{number}" for number in range(TOPICS)]
    created = admin.create_topics([NewTopic(name, chance.randint(1, 9), 1) for name in names])
    for future in created.values():
        future.result()
    topics: dict[str, ServerTopic] = {}

    def described() -> bool:
        # A topic's creation is answered a moment before the broker's own metadata has it.
        try:
            for name, told in admin.describe_topics(TopicCollection(names)).items():
                topics[name] = ServerTopic(uuid_of(str(told.result().topic_id)).text, len(told.result().partitions))
        except KafkaException:
            return False
        return True

    until(described)
    members: list[Consumer] = []

    def join(subscribed: list[str], instance: str | None = None) -> None:
        config = {
            "bootstrap.servers": bootstrap,
            "group.id": unique,
            "group.protocol": "consumer",
            "group.remote.assignor": "uniform",
            "enable.auto.commit": False,
        }
        members.append(Consumer(config | ({"group.instance.id": instance} if instance else {})))
        members[-1].subscribe(subscribed)
        settle()

    def settle() -> None:
        total = sum(topic.partitions for topic in topics.values())

        def settled() -> bool:
            owned = [len(member.assignment()) for member in members]
            return all(owned) and sum(owned) == total

        until(settled, *(partial(member.poll, 0.05) for member in members))

    try:
        join(names)
        join(names, "z")
        join(names)
        join(chance.sample(names, 5), "b")
        members.pop(0).close()
        settle()
        join(names)
    finally:
        for member in members:
            member.close()

    decisions = read_decisions(bootstrap, unique)
    judged = 0
    for decision in decisions:
        if decision.became_empty or decision.before is None:
            continue
        before = {**decision.before, **{now: decision.before[gone] for gone, now in decision.replaced}}
        # Its metadata may have lacked topics created a moment ago; topics that it knew, it assigned completely.
        known = {topic_id for target in decision.targets.values() for topic_id, _ in target}
        group = ServerGroup(
            tuple(
                ServerMember(
                    member.member_id,
                    tuple(names_in_hash_order(decision.topics_of(member.member_id) or ())),
                    before.get(member.member_id, ()),
                    member.instance_id,
                )
                for member in decision.members
            ),
            {name: topic for name, topic in topics.items() if topic.topic_id in known},
        )
        # Members, ids and their order differ in each run: without the whole question nobody could ask it again.
        question = json.dumps(write_server_line("server-uniform", group, BROKER))
        targets = from_topics(decision.targets)
        # Member ids may share a bucket of the coordinator's hash map, where no record shows their order.
        answers = (assign_on_server("server-uniform", asked, BROKER) for asked in in_every_order(group))
        assert any(same(answer, targets) for answer in answers), f"{question}\n{targets}\n{decisions}"
        judged += len(known) == len(topics)
    assert judged >= 6


def read_decisions(bootstrap: str, group_id: str) -> list[ModernDecision]:
    reader = KafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,
        exclude_internal_topics=False,
        isolation_level="read_committed",
    )
    place = TopicPartition(LOG, partition_for(group_id, len(reader.partitions_for_topic(LOG))))
    reader.assign([place])
    end = reader.end_offsets([place])[place]
    reader.seek_to_beginning(place)
    group: ModernGroup | None = None
    decisions = []
    while reader.position(place) < end:
        for records in reader.poll(timeout_ms=200).values():
            for record in records:
                key = decode_key(record.key)
                if isinstance(key, OtherKey) and key.group == group_id:
                    item = decode_modern(record.offset, record.timestamp, key, record.value, record.partition)
                    assert not isinstance(item, Rejected | UnknownVersion), item
                    group, said = replay(group, item, born=True)
                    if isinstance(said, ModernDecision):
                        decisions.append(said)
    reader.close()
    return decisions
