"""The topics that a job reads, dumped from one broker and restored on another with their offsets and times."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import NewTopic

from streaming.config import Settings
from streaming.events import decode_round
from streaming.records import RoundClosed
from tests.e2e.recording import settings_for

__all__ = ["TOPICS", "Record", "create_topics", "dump_topics", "half_of", "put_back", "settings_of_copy"]

TOPICS = "topics.txt"

_PARTITIONS = {"log": 50, "events": 4, "rounds": 1}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the offsets log (`log`), the events or the rounds topic.

    Attributes:
        topic: `log`, `events` or `rounds`.
        partition: Partition.
        offset: Offset; the first of a partition is 0, none is missing.
        time: Timestamp, ms.
        key: Key, None for null.
        value: Value, None for null.
    """

    topic: str
    partition: int
    offset: int
    time: int
    key: bytes | None
    value: bytes | None

    def line(self) -> list[object]:
        """The record as JSON values."""
        texts = [None if raw is None else base64.b64encode(raw).decode() for raw in (self.key, self.value)]
        return [self.topic, self.partition, self.offset, self.time, *texts]

    @classmethod
    def of(cls, line: list[object]) -> Record:
        """A record from the result of `line`."""
        topic, partition, offset, time, *texts = line
        key, value = (base64.b64decode(text) if isinstance(text, str) else None for text in texts)
        assert isinstance(topic, str)
        assert isinstance(partition, int)
        assert isinstance(offset, int)
        assert isinstance(time, int)
        return cls(topic, partition, offset, time, key, value)


def names(settings: Settings) -> dict[str, str]:
    """Topic names by content."""
    probe = settings.probe
    return {"log": settings.job.offsets_topic, "events": probe.events_topic, "rounds": probe.rounds_topic}


def dump_topics(settings: Settings) -> Iterator[Record]:
    """All records of the three topics, by partition and offset.

    A partition whose first records are gone, or that has other entries between its records, is refused.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=settings.kafka.bootstrap_servers, group_id=None, enable_auto_commit=False
    )
    for kind, topic in names(settings).items():
        for partition in sorted(consumer.partitions_for_topic(topic)):
            place = TopicPartition(topic, partition)
            end = consumer.end_offsets([place])[place]
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            expected = 0
            while expected < end:
                for record in consumer.poll(1_000).get(place, []):
                    assert record.offset == expected, f"{topic}-{partition}: {expected} is missing"
                    expected += 1
                    yield Record(kind, partition, record.offset, record.timestamp, record.key, record.value)
    consumer.close()


def settings_of_copy(bootstrap: str, lake: Path, *, max_rounds: int, prefix: str = "recorded") -> Settings:
    """Settings of a job on topics written by `put_back`: plain ones, with names that begin with the prefix."""
    settings = settings_for(bootstrap, lake, max_rounds=max_rounds)
    job, probe = settings.job, settings.probe
    events, rounds = f"{prefix}.events", f"{prefix}.rounds"
    return settings.model_copy(
        update={
            "job": job.model_copy(update={"offsets_topic": f"{prefix}.offsets"}),
            "probe": probe.model_copy(update={"events_topic": events, "rounds_topic": rounds}),
        }
    )


def create_topics(settings: Settings) -> None:
    """Create the topics, plain and without records."""
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap_servers)
    admin.create_topics([NewTopic(topic, _PARTITIONS[kind], 1) for kind, topic in names(settings).items()])
    admin.close()


def put_back(settings: Settings, records: Iterable[Record]) -> None:
    """Write the records of `dump_topics`; each must get its offset again."""
    topics = names(settings)
    producer = Producer({"bootstrap.servers": settings.kafka.bootstrap_servers, "linger.ms": 20})
    wrong: list[object] = []
    for record in records:

        def written(error: KafkaError | None, message: Message, record: Record = record) -> None:
            if error is not None or message.offset() != record.offset:
                wrong.append(error or (record, message.offset()))

        producer.produce(
            topics[record.topic],
            partition=record.partition,
            key=record.key,
            value=record.value,
            timestamp=record.time,
            on_delivery=written,
        )
        producer.poll(0)
    producer.flush(60)
    assert wrong == []


def half_of(records: list[Record]) -> tuple[list[Record], list[Record]]:
    """Split records at about the middle round: those that belong to the rounds before it, and the rest."""
    rounds_end = sum(record.topic == "rounds" for record in records) // 2
    closed = [
        content
        for record in records
        if record.topic == "rounds" and record.offset < rounds_end
        if isinstance(content := decode_round(record.value), RoundClosed)
    ]
    ends = {("rounds", 0): rounds_end} | {("log", p): end for p, end in enumerate(closed[-1].log)}
    for content in closed:
        ends |= {("events", int(p)): end for p, (_, end) in content.events.items()}
    first = [record for record in records if record.offset < ends.get((record.topic, record.partition), 0)]
    return first, [record for record in records if record.offset >= ends.get((record.topic, record.partition), 0)]
