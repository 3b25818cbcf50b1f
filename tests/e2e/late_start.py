"""A log with a history, compacted by the real cleaner; one job has read all of it, one a part, one nothing.

phase 1: generations, static members, groups that end, consumer groups (KIP-848), transactions; a round after each
phase 2: the same continues, while the second job is down
the cleaner: segments are rolled, and everything before them is cleaned
all is quiet: rounds, and the readings of the witnesses
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ConsumerGroupDescription
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from streaming.demo.broker import EmbeddedBroker
from streaming.groups import Rows
from streaming.job.source import SourceSettings
from streaming.job.source.connection import kept_readers
from streaming.probe import Probe
from tests.e2e.plain_job import PlainJob
from tests.e2e.readings import Owner, Reading, read_now
from tests.e2e.recording import settings_for
from tests.java_tools import GroupOffset, describe_all_groups

__all__ = ["LateStart", "play"]

LOG = "__consumer_offsets"
_PARTITIONS = 2
_TOPICS = {"orders": 6, "payments": 3}
_PATIENCE_S = 90.0
_LOOK_S = 0.1
_SEGMENT_S = 0.1

OVERRIDES = {
    "offsets.topic.num.partitions": str(_PARTITIONS),
    "log.cleaner.backoff.ms": "100",
    # By default members of consumer groups hear of a new target after up to 5 s.
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
}


@dataclass(frozen=True, slots=True)
class LateStart:
    """The results.

    Attributes:
        bootstrap: The broker.
        truth: Rows of the job that read everything before the compaction.
        resumed: Rows of the job that was down in phase 2 and came back to a compacted log.
        late: Rows of the job that started with the compacted log, with all rounds.
        taken: Number of the newest round before the second job went down.
        before: Number of records of the log before the cleaning.
        after: Number of records of the same offsets after it.
        offsets: The admin client's offsets at rest.
        tool_offsets: The output of `kafka-consumer-groups --describe --all-groups`.
        members: Members at rest, by the admin client.
    """

    bootstrap: str
    truth: Rows
    resumed: Rows
    late: Rows
    taken: int
    before: int
    after: int
    offsets: Reading
    tool_offsets: tuple[GroupOffset, ...]
    members: tuple[Owner, ...]


def play(broker: EmbeddedBroker, folder: Path) -> LateStart:
    """Play all phases on a broker started with `OVERRIDES`."""
    settings = settings_for(broker.bootstrap, folder / "unused", max_rounds=5)
    source = SourceSettings.of(settings)
    truth, resumed, late = (PlainJob(source, kept_readers, 5) for _ in range(3))
    stage = _Stage(broker.bootstrap)
    with Probe(settings) as probe, stage.playing():
        for step in _phase_1(stage):
            step()
            probe.round()
        truth.run()
        resumed.run()
        taken = resumed.rows.rounds[-1].round
        for step in _phase_2(stage):
            step()
            probe.round()
        truth.run()
        ends = stage.ends()
        before = stage.records(ends)
        _clean(broker, stage, ends)
        stage.settle()
        probe.round()
        truth.run()
        resumed.run()
        # A job that was down for less than a day still finds the tombstones. A late start does not.
        _clean(broker, stage, stage.ends(), "delete.retention.ms=1")
        _clean(broker, stage, stage.ends(), "delete.retention.ms=1")
        after = stage.records(ends)
        stage.settle()
        for _ in range(2):
            probe.round()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        witnessed = read_now(admin), tuple(describe_all_groups(broker.bootstrap)), tuple(_owners(stage.described()))
        admin.close()
        for job in (truth, resumed, late):
            job.run()
    return LateStart(broker.bootstrap, truth.rows, resumed.rows, late.rows, taken, before, after, *witnessed)


class _Stage:
    """Clients of one broker, polled from here."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.members: dict[str, Consumer] = {}
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        # (kafka-python describes only groups of the classic protocol.)
        self.witness = AdminClient({"bootstrap.servers": bootstrap})
        self.admin.create_topics([NewTopic(name, count, 1) for name, count in _TOPICS.items()])
        producer = Producer({"bootstrap.servers": bootstrap})
        for name, count in _TOPICS.items():
            for number in range(100 * count):
                producer.produce(name, b"x", partition=number % count)
        producer.flush()

    @contextmanager
    def playing(self) -> Iterator[None]:
        try:
            yield
        finally:
            for member in self.members.values():
                member.close()
            self.admin.close()

    def join(self, name: str, group: str, *topics: str, **more: Any) -> None:
        """Let a member join, and wait until its whole group has settled."""
        options = {"group.protocol": "consumer"} if more.pop("modern", False) else {"session.timeout.ms": 10_000}
        options |= {key.replace("_", "."): value for key, value in more.items()}
        self.members[name] = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": group,
                "client.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **options,
            }
        )
        self.members[name].subscribe(list(topics))
        self.settle()

    def leave(self, name: str) -> None:
        self.members.pop(name).close()
        self.settle()

    def settle(self) -> None:
        """Poll all members until the groups are stable and every member owns what the coordinator reports."""
        deadline = time.monotonic() + _PATIENCE_S
        quiet, seen, pause = 0, (), threading.Event()
        while quiet < 3:
            assert time.monotonic() < deadline, f"the groups do not settle: {seen}"
            for member in self.members.values():
                member.poll(0)
            pause.wait(_LOOK_S)
            have = {
                name: frozenset((p.topic, p.partition) for p in member.assignment())
                for name, member in self.members.items()
            }
            groups = self.described()
            told = {o.client_id: o.assigned for o in _owners(groups) if o.client_id in self.members}
            stable = all(group.state.name in {"STABLE", "EMPTY"} for group in groups)
            quiet = quiet + 1 if told == have and stable else 0
            seen = told, have, {group.group_id: group.state.name for group in groups}

    def described(self) -> list[ConsumerGroupDescription]:
        """All groups as the coordinator describes them, after it has loaded its log."""
        while True:
            try:
                names = [group.group_id for group in self.witness.list_consumer_groups().result().valid]
                if not names:
                    return []
                return [found.result() for found in self.witness.describe_consumer_groups(names).values()]
            except KafkaException:
                time.sleep(0.1)

    def commit(self, name: str, offset: int, times: int = 1) -> None:
        """Let a member commit its partitions `times` times, one offset further each time."""
        member = self.members[name]
        for at in range(offset, offset + times):
            places = [Place(p.topic, p.partition, at) for p in member.assignment()]
            if places:
                member.commit(offsets=places, asynchronous=False)

    def commit_alone(self, group: str, topic: str, offset: int, times: int = 1) -> None:
        """Commit without joining."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False})
        for at in range(offset, offset + times):
            consumer.commit(offsets=[Place(topic, p, at) for p in range(_TOPICS[topic])], asynchronous=False)
        consumer.close()

    def commit_in_transaction(self, name: str, offset: int, *, abort: bool) -> None:
        member = self.members[name]
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": f"of-{name}"})
        producer.init_transactions()
        producer.begin_transaction()
        places = [Place(p.topic, p.partition, offset) for p in member.assignment()]
        producer.send_offsets_to_transaction(places, member.consumer_group_metadata())
        if abort:
            producer.abort_transaction()
        else:
            producer.commit_transaction()

    def configure(self, settings: str) -> None:
        """Change settings of the log's topic."""
        log = ConfigResource(ConfigResource.Type.TOPIC, LOG)
        for setting in settings.split(","):
            name, value = setting.split("=")
            log.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
        (done,) = self.witness.incremental_alter_configs([log]).values()
        done.result()

    def ends(self) -> dict[int, int]:
        with self._log() as (consumer, places):
            return {place.partition: end for place, end in consumer.end_offsets(places).items()}

    def records(self, ends: dict[int, int]) -> int:
        """Number of records of the log below these ends."""
        with self._log() as (consumer, places):
            consumer.seek_to_beginning()
            count = 0
            while any(consumer.position(place) < ends[place.partition] for place in places):
                for place, records in consumer.poll(200).items():
                    count += sum(record.offset < ends[place.partition] for record in records)
            return count

    @contextmanager
    def _log(self) -> Iterator[tuple[KafkaConsumer, list[TopicPartition]]]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, group_id=None, exclude_internal_topics=False, enable_auto_commit=False
        )
        places = [TopicPartition(LOG, partition) for partition in range(_PARTITIONS)]
        consumer.assign(places)
        yield consumer, places
        consumer.close()


def _owners(groups: list[ConsumerGroupDescription]) -> Iterator[Owner]:
    for group in groups:
        for member in group.members:
            places = frozenset((p.topic, p.partition) for p in member.assignment.topic_partitions)
            yield Owner(group.group_id, member.member_id, member.client_id, member.host, places)


def _phase_1(stage: _Stage) -> list[Callable[[], None]]:
    return [
        lambda: stage.join("a", "classic", "orders", "payments"),
        lambda: stage.commit("a", 1, 20),
        lambda: stage.join("b", "classic", "orders", "payments"),
        lambda: stage.commit("b", 10, 20),
        lambda: stage.join("till", "static", "payments", group_instance_id="till-1"),
        lambda: stage.commit("till", 5, 5),
        lambda: stage.join("m1", "modern", "orders", modern=True),
        lambda: stage.commit("m1", 3, 10),
        lambda: stage.join("m2", "modern", "orders", modern=True),
        lambda: stage.join("e1", "emptied-modern", "payments", modern=True),
        lambda: stage.commit_alone("pinned", "payments", 1, 30),
        lambda: stage.commit_alone("idle", "orders", 77),
        lambda: stage.commit_alone("deleted", "orders", 7, 3),
        lambda: stage.commit_alone("reset", "payments", 90, 3),
        lambda: stage.join("e2", "emptied", "orders"),
        lambda: stage.join("t", "exactly-once", "payments"),
        lambda: stage.commit_in_transaction("t", 10, abort=False),
    ]


def _phase_2(stage: _Stage) -> list[Callable[[], None]]:
    def restart_till() -> None:
        # A static member returns under its instance id: a new member id, the same generation.
        stage.members.pop("till").close()
        stage.join("till", "static", "payments", group_instance_id="till-1")

    return [
        lambda: stage.commit("a", 50, 20),
        lambda: stage.join("c", "classic", "orders", "payments"),
        lambda: stage.leave("b"),
        lambda: stage.commit("a", 70, 10),
        restart_till,
        lambda: stage.commit("till", 30, 5),
        lambda: stage.join("m3", "modern", "orders", "payments", modern=True),
        lambda: stage.leave("m1"),
        lambda: stage.commit("m2", 40, 10),
        lambda: stage.commit("m3", 60, 10),
        lambda: stage.leave("e1"),
        lambda: stage.commit("e2", 33),
        lambda: stage.leave("e2"),
        lambda: stage.admin.delete_groups(["deleted"]),
        lambda: stage.commit_alone("reset", "payments", 2),
        lambda: stage.commit_alone("pinned", "payments", 40, 30),
        lambda: stage.commit_in_transaction("t", 99, abort=True),
        lambda: stage.commit_in_transaction("t", 55, abort=False),
        lambda: stage.join("late", "met-late", "orders"),
        lambda: stage.commit("late", 9),
    ]


def _clean(broker: EmbeddedBroker, stage: _Stage, ends: dict[int, int], more: str = "") -> None:
    """Let the real cleaner clean the log up to `ends`; tombstones of an earlier cleaning may be removed."""
    settings = f"segment.ms={round(_SEGMENT_S * 1000)},min.cleanable.dirty.ratio=0.0"
    pause = threading.Event()
    stage.configure(f"{settings},{more}" if more else settings)
    deadline = time.monotonic() + _PATIENCE_S
    reached: dict[int, int] = {}
    while any(reached.get(partition, 0) < end for partition, end in ends.items()):
        assert time.monotonic() < deadline, f"cleaned up to {reached}, not to {ends}"
        # A segment is rolled by the first append that finds it too old.
        for number in range(2 * _PARTITIONS):
            places = {TopicPartition("payments", p): OffsetAndMetadata(1, "", -1) for p in range(_TOPICS["payments"])}
            stage.admin.alter_group_offsets(f"roller-{number}", places)
        pause.wait(_SEGMENT_S)
        reached = _cleaned_upto(broker.folder)
    stage.configure("segment.ms=604800000,min.cleanable.dirty.ratio=1.0")


def _cleaned_upto(folder: Path) -> dict[int, int]:
    """First offset that is not cleaned yet, by partition of the log: from the cleaner's own checkpoint."""
    checkpoint = folder / "data" / "cleaner-offset-checkpoint"
    lines = checkpoint.read_text("utf-8").splitlines()[2:] if checkpoint.exists() else []
    words = [line.split() for line in lines]
    return {int(partition): int(offset) for topic, partition, offset in words if topic == LOG}
