"""Topics in memory instead of a `RangeReader`."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from kafka import TopicPartition
from kafka.errors import KafkaConnectionError

from streaming.job.source.connection import Readers
from streaming.record_batches import ClusterIdentity, FetchedBatch, Gone, Missing, OffsetRange
from tests.offsets_log.one_by_one import Record


def both(reader: object) -> Readers:
    """One reader for everything, as without a bus."""
    return Readers(reader, reader)  # type: ignore[arg-type]


class FakeReader:
    """Partitions as lists of records, each record its own batch.

    Attributes:
        logs: The existing records.
        end: Offset after the last record, whether that record still exists or not.
        deleted_below: Offset below which records are deleted.
        cluster_id: Kafka's own id; None where unknown.
        ids: Topic ids; other topics have no known id.
        down: Whether every call fails, as when the brokers are down.
        calls: Number of calls of each method.
        handed_on: Number of records read from each topic.
    """

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, list[Record]] = {}
        self.end: dict[TopicPartition, int] = {}
        self.deleted_below: dict[TopicPartition, int] = defaultdict(int)
        self.cluster_id: str | None = None
        self.ids: dict[str, str] = {}
        self.down = False
        self.calls: dict[str, int] = defaultdict(int)
        self.handed_on: dict[str, int] = defaultdict(int)

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic without records."""
        for partition in range(partitions):
            self.logs[TopicPartition(topic, partition)] = []
            self.end[TopicPartition(topic, partition)] = 0

    def append(
        self, topic: str, partition: int, value: bytes | None, key: bytes | None = None, time: int | None = None
    ) -> int:
        """Write a record, creating its topic if necessary; returns its offset."""
        place = TopicPartition(topic, partition)
        offset = self.end.setdefault(place, 0)
        record = Record(offset, 5_000 + offset if time is None else time, key, value)
        self.logs.setdefault(place, []).append(record)
        self.end[place] = offset + 1
        return offset

    def compact(self, topic: str, upto: Mapping[int, int], *, tombstones: bool) -> None:
        """Compact like Kafka's cleaner: below each end only the last record of each key remains.

        Args:
            topic: The topic.
            upto: First offset that is not cleaned, by partition.
            tombstones: Whether tombstones remain, too; otherwise they have expired.
        """
        for partition, end in upto.items():
            place = TopicPartition(topic, partition)
            last = {record.key: record.offset for record in self.logs[place] if record.offset < end}
            self.logs[place] = [
                record
                for record in self.logs[place]
                if record.offset >= end
                or (last[record.key] == record.offset and (tombstones or record.value is not None))
            ]

    def clean_in_front(self, topic: str, partition: int, end: int, replaced: int) -> None:
        """Stop a cleaner halfway: it cleans up to `end`, and has replaced the segments below `replaced` so far."""
        place = TopicPartition(topic, partition)
        behind = [record for record in self.logs[place] if record.offset >= replaced]
        self.compact(topic, {partition: end}, tombstones=True)
        self.logs[place] = [record for record in self.logs[place] if record.offset < replaced] + behind

    def partitions(self, topic: str) -> set[int]:
        return {p.partition for p in self.logs if p.topic == topic}

    def identity(self, topics: Mapping[str, str]) -> ClusterIdentity:
        return ClusterIdentity(self.cluster_id, {name: self.ids[t] for name, t in topics.items() if t in self.ids})

    def refresh(self) -> None:
        self._ask("refresh")

    def starts(self, topic: str) -> dict[int, int]:
        self._ask("starts")
        return {p: self.deleted_below[TopicPartition(topic, p)] for p in self.partitions(topic)}

    def ends(self, topic: str) -> dict[int, int]:
        self._ask("ends")
        return {p: self.end[TopicPartition(topic, p)] for p in self.partitions(topic)}

    def read(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        for where, item in self.read_runs(ranges, patience_s):
            if not isinstance(item, Missing):
                yield where, item

    def read_runs(
        self, ranges: Iterable[OffsetRange], _patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone | Missing]]:
        self._ask("read")
        for where in ranges:
            if where.start >= where.end:
                continue
            place = TopicPartition(where.topic, where.partition)
            expected = max(where.start, self.deleted_below[place])
            end = min(where.end, self.end[place])
            if expected > where.start:
                yield where, Gone(where.start, min(expected, where.end), "deleted", before_log=True)
            records = self.logs[place]
            for at in range(bisect_left(records, expected, key=lambda record: record.offset), len(records)):
                record = records[at]
                if record.offset >= end:
                    break
                if record.offset > expected:
                    yield where, Missing(expected, record.offset - 1)
                expected = record.offset + 1
                self.handed_on[where.topic] += 1
                yield where, FetchedBatch(record.offset, record.offset, record.timestamp, [record])
            if expected < end:
                yield where, Missing(expected, end - 1)

    def _ask(self, question: str) -> None:
        self.calls[question] += 1
        if self.down:
            raise KafkaConnectionError
