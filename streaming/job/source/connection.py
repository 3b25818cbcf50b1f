"""The Kafka consumers of the source, kept from one batch to the next.

A new consumer costs 600 ms (bootstrap, versions, metadata), a kept one reads within 6 ms. So each process (the driver's
planner, each Python worker) keeps one per set of settings, and a second one for a bus; Spark ends a worker after 60 s
of idleness, and its consumers with it.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import RetriableError

from streaming.config import KafkaSettings
from streaming.job.source.fetch import Gone, OffsetRange, RangeReader
from streaming.job.source.positions import ClusterIdentity
from streaming.job.source.settings import SourceSettings
from streaming.record_batches import FetchedBatch, FetchedRun, Missing, take_whole_batches


class BusReader(RangeReader):
    """Reads events and rounds from another Kafka, the bus (`[bus]`), and all else from the watched cluster."""

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

    def identity(self, topics: Mapping[str, str]) -> ClusterIdentity:
        """The id of the watched cluster, and of each topic the id that it has where it is."""
        here = super().identity({name: topic for name, topic in topics.items() if topic not in self._topics})
        there = self._bus.identity({name: topic for name, topic in topics.items() if topic in self._topics})
        return ClusterIdentity(here.cluster_id, {**here.topics, **there.topics})

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
        here = [tp for tp in partitions if tp.topic not in self._topics]
        return here, [tp for tp in partitions if tp.topic in self._topics]


class BusAlone(RangeReader):
    """Reads events and rounds where the watched cluster is no Kafka: the bus's id is not the cluster's."""

    def identity(self, topics: Mapping[str, str]) -> ClusterIdentity:
        """The ids of the topics; no id of a cluster."""
        return ClusterIdentity(None, super().identity(topics).topics)


_READERS: dict[tuple[int, str], RangeReader] = {}

# Ranges end at existing offsets, so a fetch seldom waits at all. A fetch sent beyond a range's end waits this long at
# the broker, and the next read on the same connection has to wait behind it.
_FETCH_WAIT_MS = 20

# A few MB per partition and response keep the broker's disk and our decoder both busy; 50 partitions of a backlog then
# hold at most `_RESPONSE_BYTES` per broker.
_PARTITION_BYTES = 4 * 1024 * 1024
_RESPONSE_BYTES = 32 * 1024 * 1024

# An item is a partition's part of a response (`FetchedRun`), or a record batch of a small one; so a poll holds at most
# the responses that are there: one per broker, and the next on its way.
_ITEMS_PER_POLL = 5_000

# Until a changed leader or a new partition is noticed without an error that points to it.
_METADATA_MS = 15_000

# Between attempts to connect.
_PAUSE_S = 1.0

# kafka-python's default is 30 s: we would notice a broker's return half a minute late.
_RECONNECT_MS = 2_000


def kept_reader(settings: SourceSettings, patience_s: float = 0.0) -> RangeReader:
    """The reader of this process for these settings, created at the first call.

    Args:
        settings: Settings of the source.
        patience_s: How long to retry brokers that cannot be reached.

    Raises:
        KafkaError: The brokers cannot be reached.
        OSError: A secret's file cannot be read.
    """
    # With the process id, because Spark forks workers from a process that may have imported this module.
    key = os.getpid(), settings.option()
    if key not in _READERS:
        _READERS[key] = _reader(settings, time.monotonic() + patience_s)
    return _READERS[key]


def _reader(settings: SourceSettings, until: float) -> RangeReader:
    watched, bus = settings.client(), settings.bus_client()
    if watched is None:
        assert bus is not None  # noqa: S101  (`SourceSettings.of` refuses it)
        return BusAlone(take_whole_batches(_patiently_connected(bus, until)), patience_s=settings.patience_s)
    consumer = _patiently_connected(watched, until)
    if bus is None:
        return RangeReader(take_whole_batches(consumer), patience_s=settings.patience_s)
    try:
        of_bus = take_whole_batches(_patiently_connected(bus, until))
    except BaseException:
        consumer.close()  # else an outage of the bus would leave one open with each attempt
        raise
    return BusReader(
        take_whole_batches(consumer),
        RangeReader(of_bus, patience_s=settings.patience_s),
        frozenset({settings.events_topic, settings.rounds_topic}),
        patience_s=settings.patience_s,
    )


def _patiently_connected(kafka: KafkaSettings, until: float) -> KafkaConsumer:
    # (By tenacity a few lines less, and 37 ms more at the start of every Python worker.)
    while True:
        try:
            return _consumer(kafka)
        except RetriableError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)


def _consumer(kafka: KafkaSettings) -> KafkaConsumer:
    # kafka-python logs every failed connection attempt as an error; the source reports an outage once.
    client_log = logging.getLogger("kafka")
    if client_log.level == logging.NOTSET:
        client_log.setLevel(logging.CRITICAL)
    given = kafka.client_config()
    ours = {
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        # A request for the end of a topic that does not exist must not create it.
        "allow_auto_create_topics": False,
        "exclude_internal_topics": False,
        # Otherwise verified in Python; see `_WholeBatches`.
        "check_crcs": False,
        "max_poll_records": _ITEMS_PER_POLL,
    }
    tuned = {
        "client_id": "evenkeel-source",
        "fetch_max_wait_ms": _FETCH_WAIT_MS,
        "max_partition_fetch_bytes": _PARTITION_BYTES,
        "fetch_max_bytes": _RESPONSE_BYTES,
        "metadata_max_age_ms": _METADATA_MS,
        "reconnect_backoff_max_ms": _RECONNECT_MS,
        "metrics_enabled": False,
    }
    return KafkaConsumer(**(tuned | given | ours))
