"""Recorded topics instead of a `RangeReader`, with a log that is compacted like by Kafka's cleaner."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kafka import KafkaConsumer, TopicPartition

from streaming.config import Settings
from streaming.job.source.settings import SourceSettings
from tests.e2e.lakes import read_packed
from tests.e2e.plain_job import PlainJob
from tests.e2e.recording import CLUSTER
from tests.job.source.fake_reader import FakeReader, both

TOPICS = "topics.txt"

PARTITIONS = {"log": 50, "events": 4, "rounds": 1}


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


SETTINGS = SourceSettings(cluster=CLUSTER, kafka={})
RECORDS = [Record.of(line) for line in read_packed(TOPICS)]
ROUNDS = sum(record.topic == "rounds" for record in RECORDS) // 2

_NAMES = {"log": "__consumer_offsets", "events": "evenkeel.events", "rounds": "evenkeel.rounds"}


class CompactedTopics(FakeReader):
    """Topics with `e2e.topics.Record`s."""

    def __init__(self, records: Iterable[Record]) -> None:
        super().__init__()
        self.create(_NAMES["log"], PARTITIONS["log"])
        for record in records:
            offset = self.append(_NAMES[record.topic], record.partition, record.value, record.key, record.time)
            assert offset == record.offset

    def log_ends(self) -> dict[int, int]:
        """End offsets of the log's partitions."""
        return {place.partition: end for place, end in self.end.items() if place.topic == _NAMES["log"]}

    def cut_rounds(self, begin: int) -> None:
        """Let the rounds topic begin at this offset."""
        self.deleted_below[TopicPartition(_NAMES["rounds"], 0)] = begin

    def compact_log(self, upto: Mapping[int, int], *, tombstones: bool) -> None:
        """Clean the log up to these offsets, by partition (`FakeReader.compact`)."""
        self.compact(_NAMES["log"], upto, tombstones=tombstones)


def job_on(topics: CompactedTopics, rounds_per_batch: int) -> PlainJob:
    return PlainJob(SETTINGS, lambda *_: both(topics), rounds_per_batch)
