"""Recorded topics in the place of a `RangeReader`, with a log that is compacted as Kafka's cleaner does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace

from kafka import TopicPartition

from e2e.topics import Record
from streaming.job.source.fetch import FetchedBatch, Gone, Missing, OffsetRange

__all__ = ["CompactedTopics"]

_NAMES = {"log": "__consumer_offsets", "events": "evenkeel.events", "rounds": "evenkeel.rounds"}

_LOG_PARTITIONS = 50


class CompactedTopics:
    """Topics of `e2e.topics.Record`s; one record a batch."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._records: dict[TopicPartition, list[Record]] = {
            TopicPartition(_NAMES["log"], partition): [] for partition in range(_LOG_PARTITIONS)
        }
        for record in records:
            place = TopicPartition(_NAMES[record.topic], record.partition)
            self._records.setdefault(place, []).append(record)
        self._ends = {place: records[-1].offset + 1 if records else 0 for place, records in self._records.items()}
        self._begins: dict[TopicPartition, int] = {}

    def log_ends(self) -> dict[int, int]:
        """Ends of the log's partitions."""
        return {place.partition: end for place, end in self._ends.items() if place.topic == _NAMES["log"]}

    def cut_rounds(self, begin: int) -> None:
        """Let the rounds topic begin at this offset."""
        self._begins[TopicPartition(_NAMES["rounds"], 0)] = begin

    def compact(self, upto: Mapping[int, int], *, tombstones: bool) -> None:
        """Clean the log: below each end only the last record of each key stays.

        Args:
            upto: First offset that is not cleaned, by partition.
            tombstones: They stay as well; otherwise their time is up.
        """
        for partition, end in upto.items():
            place = TopicPartition(_NAMES["log"], partition)
            last = {record.key: record.offset for record in self._records[place] if record.offset < end}
            self._records[place] = [
                record
                for record in self._records[place]
                if record.offset >= end
                or (last[record.key] == record.offset and (tombstones or record.value is not None))
            ]

    def partitions(self, topic: str, *, fresh: bool = False) -> set[int]:  # noqa: ARG002 - as the reader's
        return {place.partition for place in self._records if place.topic == topic}

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: self._ends[place] for place in partitions}

    def read(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        for where, item in self.read_runs(ranges, patience_s):
            if not isinstance(item, Missing):
                yield where, item

    def read_runs(
        self,
        ranges: Iterable[OffsetRange],
        patience_s: float | None = None,  # noqa: ARG002 - as the reader's
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone | Missing]]:
        for where in ranges:
            place = TopicPartition(where.topic, where.partition)
            expected = where.start
            begin = self._begins.get(place, 0)
            if begin > expected:
                yield where, Gone(expected, begin, "deleted", before_log=True)
                expected = begin
            for record in self._records[place]:
                if record.offset < expected or record.offset >= where.end:
                    continue
                if record.offset > expected:
                    yield where, Missing(expected, record.offset - 1)
                expected = record.offset + 1
                plain = SimpleNamespace(offset=record.offset, timestamp=record.time, key=record.key, value=record.value)
                yield where, FetchedBatch(record.offset, record.offset, record.time, [plain])
            if expected < min(where.end, self._ends[place]):
                yield where, Missing(expected, where.end - 1)
