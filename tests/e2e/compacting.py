"""Recorded topics instead of a `RangeReader`, with a log that is compacted like by Kafka's cleaner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka import TopicPartition

from streaming.job.source import SourceSettings
from tests.e2e.packed import read_packed
from tests.e2e.plain_job import PlainJob
from tests.e2e.recording import CLUSTER
from tests.e2e.topics import TOPICS, Record
from tests.job.source.fake_reader import FakeReader, both

__all__ = ["RECORDS", "ROUNDS", "SETTINGS", "CompactedTopics", "job_on"]

SETTINGS = SourceSettings(cluster=CLUSTER, kafka={})
RECORDS = [Record.of(line) for line in read_packed(TOPICS)]
ROUNDS = sum(record.topic == "rounds" for record in RECORDS) // 2

_NAMES = {"log": "__consumer_offsets", "events": "evenkeel.events", "rounds": "evenkeel.rounds"}

_LOG_PARTITIONS = 50


class CompactedTopics(FakeReader):
    """Topics with `e2e.topics.Record`s."""

    def __init__(self, records: Iterable[Record]) -> None:
        super().__init__()
        self.create(_NAMES["log"], _LOG_PARTITIONS)
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
