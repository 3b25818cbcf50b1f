"""A reader for a cluster whose events and rounds are on another Kafka, the bus (`[bus]` in the settings)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafka import KafkaConsumer, TopicPartition

from streaming.job.source.fetch import FetchedBatch, FetchedRun, Gone, Missing, OffsetRange, RangeReader
from streaming.job.source.identity import Identity

__all__ = ["BusReader"]


class BusReader(RangeReader):
    """Reads the topics of the bus there, and all others from the watched cluster."""

    def __init__(self, consumer: KafkaConsumer, bus: RangeReader, topics: frozenset[str], *, patience_s: float) -> None:
        """Take a consumer of the watched cluster.

        Args:
            consumer: As `RangeReader` wants it.
            bus: Reader of the bus.
            topics: Names of the topics on the bus.
            patience_s: As in `RangeReader`.
        """
        super().__init__(consumer, patience_s=patience_s)
        self._bus = bus
        self._topics = topics

    def partitions(self, topic: str, *, fresh: bool = False) -> set[int]:
        """As `RangeReader.partitions`, from the Kafka that has the topic."""
        if topic in self._topics:
            return self._bus.partitions(topic, fresh=fresh)
        return super().partitions(topic, fresh=fresh)

    def identity(self, topics: Mapping[str, str]) -> Identity:
        """The id of the watched cluster, and of each topic the id that it has where it is."""
        here = super().identity({name: topic for name, topic in topics.items() if topic not in self._topics})
        there = self._bus.identity({name: topic for name, topic in topics.items() if topic in self._topics})
        return Identity(here.cluster_id, {**here.topics, **there.topics})

    def starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """First offsets that exist. Raises KafkaError."""
        here, there = self._parted(partitions)
        return {**super().starts(here), **self._bus.starts(there)}

    def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Last stable offsets. Raises KafkaError."""
        here, there = self._parted(partitions)
        return {**super().ends(here), **self._bus.ends(there)}

    def read_runs(
        self, ranges: Iterable[OffsetRange], patience_s: float | None = None
    ) -> Iterator[tuple[OffsetRange, FetchedRun | FetchedBatch | Missing | Gone]]:
        """As `RangeReader.read_runs`; ranges of the watched cluster come first."""
        wanted = list(ranges)
        yield from super().read_runs([r for r in wanted if r.topic not in self._topics], patience_s)
        yield from self._bus.read_runs([r for r in wanted if r.topic in self._topics], patience_s)

    def _parted(self, partitions: Sequence[TopicPartition]) -> tuple[list[TopicPartition], list[TopicPartition]]:
        here = [place for place in partitions if place.topic not in self._topics]
        return here, [place for place in partitions if place.topic in self._topics]
