"""A second source for the probe's results: plain clients that create groups and read the written events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import NoError, RetriableError
from kafka.structs import OffsetAndMetadata
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from streaming.config import Settings
from streaming.events import (
    Event,
    GroupEvent,
    GroupsEvent,
    RejectedEvent,
    UnknownType,
    decode_event,
    decode_round,
)
from streaming.probe.clients import Connections
from streaming.probe.deadline import Deadline
from streaming.records import GroupObservation, RoundClosed, RoundOpened, TopicObservation
from streaming.rocketmq import Answer, Client, Question, Request

MakeSettings = Callable[..., Settings]


@contextmanager
def requests_sent() -> Iterator[Counter[str]]:
    """The requests to Kafka that the probe sends meanwhile, by Kafka's name."""
    sent: Counter[str] = Counter()
    send = Connections._send

    async def counted(connections: Connections, node: int | None, request: Any, deadline: Deadline) -> Any:
        sent[request.name.removesuffix("Request")] += 1
        return await send(connections, node, request, deadline)

    with patch.object(Connections, "_send", counted):
        yield sent


@contextmanager
def asked_of_rocketmq() -> Iterator[Counter[str]]:
    """The requests to RocketMQ that are sent meanwhile, by their names."""
    sent: Counter[str] = Counter()
    ask = Client.ask

    def counted(client: Client, questions: Sequence[Question], seconds: float) -> list[Answer]:
        sent.update(Request(question.code).name for question in questions)
        return ask(client, questions, seconds)

    with patch.object(Client, "ask", counted):
        yield sent


@dataclass(frozen=True, slots=True)
class Cluster:
    """The session's broker, as kafka-python's own clients see it, for comparison with the probe."""

    bootstrap: str
    unique: str
    admin: KafkaAdminClient

    def topic(self, name: str = "orders", partitions: int = 3) -> str:
        topic = f"{self.unique}-{name}"
        self.admin.create_topics(
            {topic: {"num_partitions": partitions, "replication_factor": 1}}, wait_for_metadata=True
        )
        return topic

    def produce(self, topic: str, counts: list[int]) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap)
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.send(topic, b"value", partition=partition)
        producer.flush()
        producer.close()

    def commit(self, name: str, topic: str, offsets: list[int]) -> str:
        """Commit for a group without members, which creates it."""
        group = f"{self.unique}-{name}"
        commits = {TopicPartition(topic, n): OffsetAndMetadata(offset, "", -1) for n, offset in enumerate(offsets)}

        def committed() -> None:
            for answer in self.admin.alter_group_offsets(group, commits).values():
                assert answer is not None
                if answer is not NoError:
                    raise answer

        # With its first group the broker creates the offsets log, which takes a moment.
        once_ready = Retrying(
            retry=retry_if_exception_type(RetriableError), stop=stop_after_delay(60), wait=wait_fixed(0.1), reraise=True
        )
        once_ready(committed)
        return group

    def delete_group(self, group: str) -> None:
        self.admin.delete_groups([group])


@dataclass(frozen=True, slots=True)
class Seen:
    """The events of one round, read by a plain consumer from the positions in the closing record."""

    events: list[Event]
    keys: list[bytes | None]

    @property
    def groups(self) -> dict[str, GroupObservation]:
        """Those that are there."""
        return {e.key: e.saw for e in self.events if isinstance(e, GroupEvent) and e.saw.gone is None}

    @property
    def gone(self) -> dict[str, str]:
        """Why they are gone."""
        return {event.key: event.saw.gone for event in self.events if event.saw.gone is not None}

    def topics(self, group: str) -> dict[str, TopicObservation]:
        return {topic.topic: topic for topic in self.groups[group].topics}


def read(bootstrap: str, topic: str, partition: int, first: int, end: int) -> list[Any]:
    """All records of a partition at the offsets [first, end)."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False)
    place = TopicPartition(topic, partition)
    consumer.assign([place])
    consumer.seek(place, first)
    records: list[Any] = []
    while consumer.position(place) < end:
        records.extend(record for record in consumer.poll(timeout_ms=200).get(place, []) if record.offset < end)
    consumer.close()
    return records


def read_round(settings: Settings, closed: RoundClosed) -> Seen:
    """The events of a closed round."""
    events: list[Event] = []
    keys: list[bytes | None] = []
    for partition, (first, end) in closed.events.items():
        for record in read(settings.kafka.bootstrap_servers, settings.probe.events_topic, int(partition), first, end):
            told = decode_event(record.value)
            assert not isinstance(told, RejectedEvent | UnknownType), told
            of_round = [
                event
                for event in (told.events() if isinstance(told, GroupsEvent) else (told,))
                if event.saw.round == closed.round
            ]
            events.extend(of_round)
            keys.extend(record.key for _ in of_round)
    return Seen(events, keys)


def read_all(bootstrap: str, topic: str) -> list[Any]:
    """All records of a topic so far, partition by partition."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)) as consumer:
        places = [TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic) or (0,)]
        ends = consumer.end_offsets(places)
    return [record for place in places for record in read(bootstrap, topic, place.partition, 0, ends[place])]


def rounds_of(settings: Settings) -> list[tuple[int, RoundOpened | RoundClosed]]:
    """Append time in ms and content of each record of the rounds topic so far, in order."""
    records = read_all(settings.bus_kafka.bootstrap_servers, settings.probe.rounds_topic)
    decoded = [(record.timestamp, decode_round(record.value)) for record in records]
    return [(time, record) for time, record in decoded if isinstance(record, RoundOpened | RoundClosed)]


def closed_of(settings: Settings) -> list[RoundClosed]:
    """The rounds that have closed so far."""
    return [record for _, record in rounds_of(settings) if isinstance(record, RoundClosed)]
