"""Share groups under churn are recomputed, and a target that no assignor gives is drift in each type of group.

The long test may record a group for `test_recorded_groups.py`: the environment variable RECORD names the folder. The
broker need not believe what is forged, because Evenkeel reads the log: that broker has no other test.
"""

from __future__ import annotations

import os
import random
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka import KafkaConsumer, TopicPartition

from streaming.demo.broker import EmbeddedBroker
from streaming.groups.rows import DriftRow
from streaming.offsets_log import OtherKey, decode_key, partition_for
from streaming.records import MODERN_RECORDS, GroupEpoch, TargetAssignment
from tests.java_tools import describe_share_group
from tests.offsets_log.written import other_key
from tests.oracle.java_classes import JavaMembers, ShareMembers
from tests.real_groups.followed import Followed, until
from tests.real_groups.party import RELEASE, Party, make_topics, produce
from tests.real_groups.real_log import record_group
from tests.real_groups.real_streams import Machine

GROUPS = 12
DECISIONS = 300
_MOST_MEMBERS = 7
_MOST_PARTITIONS = 9


_DESCRIBED = 3
"""Groups that Kafka's own tool is asked about at the end: each call starts a JVM."""


@pytest.fixture
def processes() -> Iterator[tuple[ShareMembers, ShareMembers]]:
    """Members live in either; the second crashes."""
    with ShareMembers(RELEASE) as first, ShareMembers(RELEASE) as second:
        yield first, second
        assert first.failures + second.failures == []


class ShareParty:
    """The members of one share group, changed at random."""

    def __init__(self, bootstrap: str, processes: tuple[ShareMembers, ...], group: str, counts: dict[str, int]) -> None:
        self.group = group
        self.members: list[tuple[ShareMembers, str]] = []
        self.counts = counts
        self._processes = processes
        self._settings = {"bootstrap.servers": bootstrap, "group.id": group}
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        # Half of the groups have members that all subscribe to the same topics.
        self._chance = random.Random(group)
        self._alike = self._chance.random() < 0.5
        self._topics = self._drawn()

    def change(self) -> None:
        """Let a member join, leave or subscribe to something else, or add a partition to a topic."""
        chance = self._chance
        kinds = ["join"] * (len(self.members) < _MOST_MEMBERS) * 5
        kinds += [*["leave"] * (len(self.members) > 1) * 4, *["subscribe"] * bool(self.members) * 2, "grow"]
        kind = chance.choice(kinds)
        if kind == "join":
            self.join(self._topics if self._alike else self._drawn())
        elif kind == "leave":
            self.leave(*chance.choice(self.members))
        elif kind == "subscribe" and self._alike:
            self._topics = self._drawn()
            for process, name in self.members:
                process.subscribe(name, self._topics)
        elif kind == "subscribe":
            process, name = chance.choice(self.members)
            process.subscribe(name, self._drawn())
        elif kind == "grow":
            self._grow(chance.choice([topic for topic, count in self.counts.items() if count < _MOST_PARTITIONS]))

    def join(self, topics: list[str]) -> None:
        process = self._chance.choice(self._processes)
        self.members.append((process, process.start(topics, self._settings)))

    def leave(self, process: ShareMembers, name: str) -> None:
        self.members.remove((process, name))
        process.stop(name)
        until(process.closed(name).is_set, lambda: process.closed(name).wait(1))

    def crashed(self, process: ShareMembers) -> None:
        """Forget the members of a process that was killed."""
        self.members = [member for member in self.members if member[0] is not process]

    def leave_all(self) -> None:
        for member in list(self.members):
            self.leave(*member)

    def _drawn(self) -> list[str]:
        return self._chance.sample(list(self.counts), self._chance.randint(1, len(self.counts)))

    def _grow(self, topic: str) -> None:
        self.counts[topic] += 1
        grown = self._admin.create_partitions([NewPartitions(topic, self.counts[topic])])
        for future in grown.values():
            future.result()


def counted(rows: dict[int, DriftRow]) -> Counter[tuple[str, str | None]]:
    return Counter((row.verdict, row.reason) for row in rows.values())


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.turn(6)
@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_every_decision_of_share_groups_under_churn_is_recomputed_and_none_drifts(
    bootstrap: str, unique: str, processes: tuple[ShareMembers, ShareMembers]
) -> None:
    said: Counter[tuple[str, str | None]] = Counter()
    with Followed(bootstrap, unique, interval_ms=1_000) as followed, ExitStack() as stack:
        parties = []
        for number in range(GROUPS):
            counts = {f"{unique}-{number}-{topic}": count for topic, count in (("a", 1), ("b", 4), ("c", 6))}
            make_topics(bootstrap, counts)
            parties.append(ShareParty(bootstrap, processes, f"{unique}-{number}", counts))
            stack.callback(parties[-1].leave_all)
            parties[-1].join(list(counts))
        for wanted in (DECISIONS // 2, DECISIONS):
            while said.total() < wanted:
                for party in parties:
                    party.change()
                followed.round()
                told = [
                    counted(followed.drift(party.group)) for party in parties if f"g:{party.group}" in followed.rows
                ]
                said = sum(told, Counter())
            # Its members are gone once their sessions have expired.
            processes[1].kill()
            for party in parties:
                party.crashed(processes[1])
                party.join(list(party.counts))
        followed.round_until(lambda: all(is_at_rest(followed, party) for party in parties))
        if recorded := os.environ.get("RECORD"):
            for party in parties:
                name = f"share-{party.group.rpartition('-')[2]}.jsonl"
                record_group(bootstrap, party.group, party.counts, Path(recorded) / name)
        for party in parties[:_DESCRIBED]:
            assert_as_described(followed, bootstrap, party)
        said = sum([counted(followed.drift(party.group)) for party in parties], Counter())
        print(f"{said.total()} decisions: {said.most_common()}")
        assert "drifted" not in {verdict for verdict, _ in said}
        judged = said.total() - said["not_applicable", "the group is empty"]
        assert said["identical", None] >= 0.95 * judged, said


def is_at_rest(followed: Followed, party: ShareParty) -> bool:
    rows = followed.members(party.group)
    return len(rows) == len(party.members) and not followed.health(party.group).findings


def assert_as_described(followed: Followed, bootstrap: str, party: ShareParty) -> None:
    """Members, state and partitions are those of Kafka's own tool."""

    def is_as_described() -> bool:
        state, described = describe_share_group(bootstrap, party.group)
        shown = {
            name: {(of.topic, number) for of in row.partitions or () for number in of.partitions}
            for name, row in followed.members(party.group).items()
        }
        return state == followed.health(party.group).state and shown == {m: of for m, (_, _, of) in described.items()}

    until(is_as_described, followed.round)
    health = followed.health(party.group)
    assert health.verdict == "identical", health
    assert health.imbalance is not None


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
    [(epoch_type, _)] = [key for key in newest if MODERN_RECORDS.get(key[0]) is GroupEpoch]
    [(target_epoch_type, _)] = [key for key in newest if key[0] in {6, 12, 20}]
    [target_type] = {key_type for key_type, _ in newest if MODERN_RECORDS.get(key_type) is TargetAssignment}
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


@pytest.mark.kafka
@pytest.mark.java
@pytest.mark.nightly
@pytest.mark.turn(6)
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
