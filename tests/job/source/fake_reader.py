"""Topics in memory, in the place of a `RangeReader`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace

from kafka import TopicPartition
from kafka.errors import KafkaConnectionError

from streaming.job.source.fetch import FetchedBatch, Gone, OffsetRange

Kept = tuple[bytes | None, bytes | None]


class FakeReader:
    """Partitions as lists of (key, value), one record a batch; offsets are places in the list.

    Attributes:
        down: Every call fails, as it does when the brokers are away.
        calls: How often each question was asked.
    """

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, list[Kept]] = {}
        self.deleted_below: dict[TopicPartition, int] = defaultdict(int)
        self.known: dict[str, set[int]] = {}
        self.down = False
        self.calls: dict[str, int] = defaultdict(int)

    def append(self, topic: str, partition: int, value: bytes | None, key: bytes | None = None) -> int:
        log = self.logs.setdefault(TopicPartition(topic, partition), [])
        log.append((key, value))
        return len(log) - 1

    def partitions(self, topic: str, *, fresh: bool = False) -> set[int]:
        self._ask("partitions")
        if fresh or topic not in self.known:
            self.known[topic] = {p.partition for p in self.logs if p.topic == topic}
            if not self.known[topic]:
                return self.known.pop(topic)
        return self.known[topic]

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self._ask("ends")
        return {p: len(self.logs[p]) for p in partitions}

    def read(
        self, ranges: Iterable[OffsetRange], _patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedBatch | Gone]]:
        self._ask("read")
        for wanted in ranges:
            partition = TopicPartition(wanted.topic, wanted.partition)
            first = max(wanted.start, self.deleted_below[partition])
            if first > wanted.start:
                yield wanted, Gone(wanted.start, min(first, wanted.end), "deleted", before_log=True)
            for offset in range(first, min(wanted.end, len(self.logs[partition]))):
                key, value = self.logs[partition][offset]
                record = SimpleNamespace(offset=offset, timestamp=5_000 + offset, key=key, value=value)
                yield wanted, FetchedBatch(offset, offset, record.timestamp, [record])

    read_runs = read

    def _ask(self, question: str) -> None:
        self.calls[question] += 1
        if self.down:
            raise KafkaConnectionError
