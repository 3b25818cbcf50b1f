"""Recorded topics instead of a `RangeReader`, with a log that is compacted like by Kafka's cleaner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka import TopicPartition

from tests.e2e.topics import Record
from tests.job.source.fake_reader import FakeReader

__all__ = ["CompactedTopics"]

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
