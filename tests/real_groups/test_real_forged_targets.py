"""A target that no assignor gives, written by hand into a live broker's log, is drift in each type of group.

The broker need not believe it: Evenkeel reads the log. So this broker has no other test.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.broker import EmbeddedBroker
from streaming.groups.rows import DriftRow
from streaming.offsets_log import OtherKey, decode_key, partition_for
from streaming.records import GROUP_EPOCH_TYPES, TARGET_TYPES
from tests.offsets_log.written import other_key
from tests.oracle.java_classes import JavaMembers, ShareMembers
from tests.real_groups.followed import Followed
from tests.real_groups.party import RELEASE, Party, make_topics, produce
from tests.real_groups.real_streams import Machine

pytestmark = [pytest.mark.kafka, pytest.mark.java, pytest.mark.nightly, pytest.mark.turn(6)]

_LOG = "__consumer_offsets"


@contextmanager
def consumer_members(bootstrap: str, group: str, _: Path) -> Iterator[None]:
    with JavaMembers(RELEASE) as java, Party(bootstrap, java, group) as party:
        party.start([f"{group}-a"])
        party.start([f"{group}-a"])
        yield


@contextmanager
def share_members(bootstrap: str, group: str, _: Path) -> Iterator[None]:
    """Each subscribes to a topic of its own."""
    with ShareMembers(RELEASE) as members:
        for topic in ("a", "b"):
            members.start([f"{group}-{topic}"], {"bootstrap.servers": bootstrap, "group.id": group})
        yield


@contextmanager
def streams_members(bootstrap: str, group: str, folder: Path) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("first", "second"):
            stack.enter_context(Machine(bootstrap, group, folder / name)).run(f"{group}-a", store=None)
        yield


def rests(followed: Followed, group: str) -> bool:
    if f"g:{group}" not in followed.rows:
        return False
    row = followed.health(group)
    having = [member for member in followed.members(group).values() if member.partition_count]
    return row.members == len(having) == 2 and row.verdict == "identical" and not row.findings


def forge(bootstrap: str, group: str, to: str, like: str) -> None:
    """Write the next epoch of a group, with a target in which one member has what another one has."""
    reader = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, exclude_internal_topics=False)
    place = TopicPartition(_LOG, partition_for(group, len(reader.partitions_for_topic(_LOG))))
    reader.assign([place])
    end = reader.end_offsets([place])[place]
    reader.seek_to_beginning(place)
    newest: dict[tuple[int, str | None], bytes] = {}
    while reader.position(place) < end:
        for records in reader.poll(timeout_ms=200).values():
            for record in records:
                key = decode_key(record.key)
                if isinstance(key, OtherKey) and key.group == group and record.value is not None:
                    newest[key.key_type, key.part] = record.value
    reader.close()
    [(epoch_type, _)] = [key for key in newest if key[0] in GROUP_EPOCH_TYPES]
    [(target_epoch_type, _)] = [key for key in newest if key[0] in {6, 12, 20}]
    [target_type] = {key_type for key_type, _ in newest if key_type in TARGET_TYPES}
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "__admin_client", "log_level": 0})

    def write(key: bytes, value: bytes) -> None:
        producer.produce(_LOG, value, key, partition=place.partition)

    def next_epoch(value: bytes) -> bytes:
        """An epoch follows the version in the values of both types."""
        (epoch,) = struct.unpack(">i", value[2:6])
        return value[:2] + struct.pack(">i", epoch + 1) + value[6:]

    write(other_key(epoch_type, group), next_epoch(newest[epoch_type, None]))
    write(other_key(target_type, group, to), newest[target_type, like])
    write(other_key(target_epoch_type, group), next_epoch(newest[target_epoch_type, None]))
    assert producer.flush(30) == 0


@pytest.mark.timeout(600)
def test_a_target_forged_in_a_live_brokers_log_is_drift_in_each_type_of_group(tmp_path: Path, unique: str) -> None:
    found: dict[str, tuple[DriftRow, str, str]] = {}
    kinds = {"consumer": consumer_members, "share": share_members, "streams": streams_members}
    with EmbeddedBroker(tmp_path / "broker", heap="384m") as broker, Followed(broker.bootstrap, unique) as followed:
        for kind, members_of in kinds.items():
            group = f"{unique}-{kind}"
            topics = {f"{group}-a": 2, f"{group}-b": 2}
            make_topics(broker.bootstrap, topics)
            produce(broker.bootstrap, topics)
            with members_of(broker.bootstrap, group, tmp_path):
                followed.round_until(lambda group=group: rests(followed, group))
                epoch = followed.health(group).generation or 0
                rows = followed.members(group).values()
                like, to = sorted(rows, key=lambda row: [of.topic for of in row.partitions or ()])
                forge(broker.bootstrap, group, to.member_id, like.member_id)
                followed.round_until(lambda group=group, epoch=epoch: (followed.health(group).generation or 0) > epoch)
            newest = max(followed.drift(group).values(), key=lambda row: row.decision)
            found[kind] = newest, like.member_id, to.member_id
            assert followed.health(group).verdict == "drifted"
    said = {
        kind: (row.verdict, row.basis, row.reason, {(one.kind, one.actual) for one in row.drifted_partitions})
        for kind, (row, _, _) in found.items()
    }
    broken = ("drifted", "invariant", "it violates the invariants of every assignor")
    assert said == {
        "consumer": (*broken, {("doubly_assigned", both_of(found["consumer"]))}),
        "share": (*broken, {("not_subscribed", (found["share"][2],))}),
        "streams": (*broken, {("doubly_assigned", both_of(found["streams"]))}),
    }
    assert {one.topic for one in found["share"][0].drifted_partitions} == {f"{unique}-share-a"}
    assert {one.topic for one in found["streams"][0].drifted_partitions} == {"0"}


def both_of(found: tuple[DriftRow, str, str]) -> tuple[str, ...]:
    """Both members, in the order of the row."""
    [actual] = {one.actual for one in found[0].drifted_partitions}
    assert set(actual or ()) == set(found[1:])
    return actual or ()
