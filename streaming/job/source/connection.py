"""What the source reads with, kept from one batch to the next: Kafka consumers, and a reader of a folder.

A new consumer costs 600 ms (bootstrap, versions, metadata), a kept one reads within 6 ms. So each process (the driver's
planner, each Python worker) keeps one per set of settings, and a second one for a bus; Spark ends a worker after 60 s
of idleness, and its consumers with it. A secret in a file may change meanwhile: it is read at each login
(`streaming/logins.py`).
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import closing
from dataclasses import dataclass

from kafka import KafkaConsumer
from kafka.errors import KafkaError, RetriableError

from streaming.bus import FolderObjects, FolderReader, TopicReader
from streaming.config import KafkaSettings
from streaming.job.source.positions import EVENTS, LOG, ROUNDS
from streaming.job.source.settings import SourceSettings
from streaming.record_batches import ClusterIdentity, RangeReader, take_whole_batches
from streaming.records import LOG as FROM_LOG


@dataclass(frozen=True, slots=True)
class Readers:
    """The readers of one process; one and the same without a bus (`[bus]`).

    Attributes:
        log: Reads the offsets log of the watched cluster; None where that is no Kafka.
        bus: Reads events and rounds.
    """

    log: RangeReader | None
    bus: TopicReader

    def identity(self, settings: SourceSettings, follows: str | None) -> ClusterIdentity:
        """The id of the watched cluster, None where that is no Kafka, and those of the topics that the query reads."""
        of_bus = self.bus.identity({EVENTS: settings.events_topic, ROUNDS: settings.rounds_topic})
        if self.log is None:
            return ClusterIdentity(None, of_bus.topics)
        of_log = self.log.identity({LOG: settings.offsets_topic} if follows in {None, FROM_LOG} else {})
        return ClusterIdentity(of_log.cluster_id, {**of_log.topics, **of_bus.topics})

    def refresh(self) -> None:
        """Ask for metadata again, so that the next identity is current. Raises KafkaError."""
        self.bus.refresh()
        if self.log is not None and self.log is not self.bus:
            self.log.refresh()


_READERS: dict[tuple[int, str], Readers] = {}

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


def kept_readers(settings: SourceSettings, patience_s: float = 0.0) -> Readers:
    """The readers of this process for these settings, created at the first call.

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
        _READERS[key] = _readers(settings, time.monotonic() + patience_s)
    return _READERS[key]


def cluster_id_of(settings: SourceSettings) -> str | None:
    """The id of the watched cluster; None where that is no Kafka, or cannot be reached now."""
    watched = settings.client()
    if watched is None:
        return None
    try:
        with closing(_consumer(watched)) as consumer:
            return RangeReader(take_whole_batches(consumer), patience_s=0).identity({}).cluster_id
    except KafkaError:
        return None


def _readers(settings: SourceSettings, until: float) -> Readers:
    def reader(kafka: KafkaSettings) -> RangeReader:
        return RangeReader(take_whole_batches(_patiently_connected(kafka, until)), patience_s=settings.patience_s)

    # The bus first: an outage of the other must not leave a connection open with each attempt.
    watched, bus = settings.client(), settings.bus_client()
    of_bus: TopicReader | None = None
    if settings.bus_folder is not None:
        of_bus = FolderReader(FolderObjects(settings.bus_folder, settings.cluster), settings.patience_s)
    elif bus is not None:
        of_bus = reader(bus)
    try:
        log = None if watched is None else reader(watched)
    except BaseException:
        if of_bus is not None:
            of_bus.close()
        raise
    only = of_bus or log
    assert only is not None  # noqa: S101 - what is no Kafka has a bus
    return Readers(log, only)


def _patiently_connected(kafka: KafkaSettings, until: float) -> KafkaConsumer:
    # By tenacity a few lines less, and 37 ms more at the start of every Python worker.
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
