"""Members of one real group: librdkafka's in this process, Kafka's own Java consumers in a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.groups.rows import LagRow
from tests.java_tools import describe_groups
from tests.oracle.java_classes import JavaMembers
from tests.real_groups.followed import Followed, until

RELEASE = "4.3.1"

RECORDS = 5
"""Records that `produce` writes to each partition."""

Place = tuple[str, int]


class Party:
    """The members of one group. A context manager, at whose end all leave. Without `java`, it has none of Java."""

    def __init__(self, bootstrap: str, java: JavaMembers | None, group: str) -> None:
        self.group = group
        self.consumers: list[Consumer] = []
        self._bootstrap = bootstrap
        self._java = java
        self.names: list[str] = []
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self.names):
            self.stop(name)
        while self.consumers:
            self.leave(self.consumers[0])

    def join(self, topics: Sequence[str], protocol: str = "consumer", **settings: str) -> Consumer:
        """Let a librdkafka client join; it commits only on `commit`."""
        config: dict[str, str | int | bool] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self.group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        if protocol == "classic":
            config |= {"partition.assignment.strategy": "range", "session.timeout.ms": 6_000}
            config |= {"heartbeat.interval.ms": 500}
        config |= {name.replace("_", "."): value for name, value in settings.items()}
        consumer = Consumer(config)
        consumer.subscribe(list(topics))
        self.consumers.append(consumer)
        return consumer

    def leave(self, consumer: Consumer) -> None:
        """Let one leave."""
        self.consumers.remove(consumer)
        consumer.close()

    def start(self, topics: Sequence[str], protocol: str = "consumer", **settings: str) -> str:
        """Let a Java client join; it commits by itself what it has read."""
        config = {
            "bootstrap.servers": self._bootstrap,
            "group.id": self.group,
            "group.protocol": protocol,
            "enable.auto.commit": "true",
            "auto.commit.interval.ms": "200",
            "auto.offset.reset": "earliest",
        }
        if protocol == "classic":
            config |= {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"}
            config |= {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
        name = self._java.start(topics, config | {name.replace("_", "."): value for name, value in settings.items()})
        self.names.append(name)
        return name

    def stop(self, name: str) -> None:
        """Let a Java client leave, and wait until it has."""
        self.names.remove(name)
        self._java.stop(name)
        closed = self._java.closed(name)
        until(closed.is_set, self.poll)

    def poll(self) -> None:
        """Serve the librdkafka clients."""
        for consumer in self.consumers:
            consumer.poll(0.02)

    def rest(self, partitions: int) -> dict[str, set[Place]]:
        """Wait until the group is stable, all its members have joined, and its partitions are owned.

        Returns:
            The partitions of each member.
        """
        told: dict[str, set[Place]] = {}

        def rests() -> bool:
            try:
                description = self._admin.describe_consumer_groups([self.group])[self.group].result()
            except KafkaException:
                return False  # no such group yet
            told.clear()
            for member in description.members:
                places = member.assignment.topic_partitions if member.assignment is not None else ()
                told[member.member_id] = {(place.topic, place.partition) for place in places}
            owned = [place for places in told.values() for place in places]
            mine = sum(len(consumer.assignment()) for consumer in self.consumers)
            of_mine = sum(len(told.get(consumer.memberid() or "", ())) for consumer in self.consumers)
            return (
                description.state.name == "STABLE"
                and len(told) == len(self.consumers) + len(self.names)
                and len(owned) == len(set(owned)) == partitions
                and mine == of_mine
            )

        until(rests, self.poll)
        return told

    def has_read_all(self, followed: Followed) -> bool:
        """Whether the Java members have committed everything, according to the newest round."""
        mine = {consumer.memberid() for consumer in self.consumers}
        rows = followed.lag(self.group).values()
        return bool(rows) and all(row.lag == 0 for row in rows if row.member_id not in mine)

    def commit(self, consumer: Consumer, offset: int) -> None:
        """Let a librdkafka client commit this offset for all its partitions."""
        offsets = [TopicPartition(place.topic, place.partition, offset) for place in consumer.assignment()]
        consumer.commit(offsets=offsets, asynchronous=False)


def commit_places(consumer: Consumer, places: Sequence[TopicPartition]) -> None:
    """Commit without being a member; repeated while the group's coordinator is being found, or moves or loads."""

    def committed() -> bool:
        try:
            consumer.commit(offsets=list(places), asynchronous=False)
        except KafkaException as error:
            passing = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
            if not error.args[0].retriable() and error.args[0].code() not in passing:
                raise
            return False
        return True

    until(committed)


def make_topics(bootstrap: str, topics: Mapping[str, int]) -> None:
    """Create topics with these partition counts."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()]).values():
        created.result()


def produce(bootstrap: str, topics: dict[str, int]) -> None:
    """Write `RECORDS` records to each partition of these topics."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for topic, partitions in topics.items():
        for partition in range(partitions):
            for _ in range(RECORDS):
                producer.produce(topic, b"value", partition=partition)
    assert producer.flush(60) == 0


def assert_as_the_tool_says(followed: Followed, bootstrap: str, groups: Sequence[str]) -> None:
    """Check that offsets, lag and owners of groups at rest equal those of `kafka-consumer-groups --describe`."""
    told = {
        (row.group, row.topic, row.partition): (
            row.current_offset,
            row.log_end_offset,
            row.lag,
            row.consumer_id,
            row.host,
            row.client_id,
        )
        for row in describe_groups(bootstrap, groups)
    }
    ours = {(group, *place): _as_told(row) for group in groups for place, row in followed.lag(group).items()}
    differing = ours.items() ^ told.items()
    assert not differing, differing


def _as_told(row: LagRow) -> tuple[int | None, int | None, int | None, str | None, str | None, str | None]:
    return (row.committed_offset, row.high_watermark, row.lag, row.member_id, row.client_host, row.client_id)
