"""The probe of a Kafka cluster: what it keeps from round to round, and the clients that its rounds ask."""

from __future__ import annotations

import threading
from typing import Any

from kafka.errors import KafkaError

from streaming.config import KafkaSettings, Settings
from streaming.lifecycle import room_log
from streaming.probe.clients import open_admin
from streaming.probe.exceptions import NoOffsetsLogError, RoundAbandonedError, error_text
from streaming.probe.kafka.cluster import KafkaCluster
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.rounds import one_round
from streaming.probe.kafka.source import Source, choose, is_readable
from streaming.probe.readback import remember
from streaming.probe.rounds_probe import RoundsProbe
from streaming.probe.standby import Identity
from streaming.probe.writer import RoundWriter
from streaming.records import LOG, RoundClosed

_LOG = room_log(__name__)


class Probe(RoundsProbe):
    """Runs rounds against one Kafka cluster, written to it or to the bus."""

    LEAST_ROUND_S = 10.0
    """Interval settings can be shorter, for demos and tests; a broker's election takes seconds there as well."""

    KAFKA = "the cluster"

    def __init__(self, settings: Settings, stop: threading.Event | None = None, who: Identity | None = None) -> None:
        """Prepare, as `RoundsProbe` does."""
        super().__init__(settings, stop, who)
        self._admin: Any = None
        self._cluster: KafkaCluster | None = None
        self._memory: Memory | None = None
        self._source: Source | None = None

    @property
    def requests(self) -> dict[str, int]:
        """Requests sent since the clients were opened, by Kafka's name."""
        return dict(self._cluster.sent) if self._cluster else {}

    def _close(self) -> None:
        writer, admin = self._writer, self._admin
        self._writer = self._admin = self._cluster = self._memory = None
        try:
            if writer is not None:
                writer.close()
        finally:
            if admin is not None:
                admin.close()

    def _round(self) -> RoundClosed:
        cluster, writer, memory = self._opened()
        closed, self._memory = one_round(
            cluster, writer, self._turn, self._settings, self._rules, memory, self._deadline()
        )
        return closed

    def _opened(self) -> tuple[KafkaCluster, RoundWriter, Memory]:
        settings = self._settings
        if self._admin is None:
            self._admin = open_admin(settings.kafka)
        if self._writer is None:
            self._writer = (
                self._writer_on_bus(settings.bus) if settings.bus else self._writer_by(self._admin, settings.kafka)
            )
        if self._memory is None:
            self._turn.begin(self._writer, self._recall_deadline())
            self._memory = remember(settings, self._recall_deadline())
        source = self._source or self._choose(self._admin, self._memory)
        if self._cluster is None:
            self._cluster = KafkaCluster(
                self._admin,
                settings.job.offsets_topic,
                settings.filters,
                settings.job.heartbeat_ms,
                settings.probe.interval_ms,
                settings.watches_cluster_topic if settings.probe.cluster_topics else None,
                reads_log=source.name == LOG,
            )
        return self._cluster, self._writer, self._memory

    def _choose(self, admin: Any, memory: Memory) -> Source:
        """Decide for the life of this process where groups are read from."""
        deadline = self._deadline()
        source = choose(self._settings, memory.source, lambda: is_readable(admin, self._settings, deadline))
        if source is None:
            message = f"the cluster has no topic {self._settings.job.offsets_topic} yet, because it never had a group"
            raise NoOffsetsLogError(message)
        _LOG.info("%s", source.sentence)
        self._source = source
        return source

    def _writer_on_bus(self, bus: KafkaSettings) -> RoundWriter:
        try:
            admin = open_admin(bus)
            try:
                return self._writer_by(admin, bus)
            finally:
                admin.close()
        except KafkaError as error:
            # Named, because another team may run it than the watched cluster.
            message = f"the bus did not answer ({error_text(error)})"
            raise RoundAbandonedError(message) from error
