"""The probe of a Kafka cluster: what it keeps from round to round, the clients that it asks, and one round.

    (a) the opening record: its offset is the round's number, its append time the round's time
    (b) the end of the offsets log: high watermark, then last stable offset; where it is held back, by whom
    (c) everything else: groups, subscriptions, committed topics, then the topics' metadata and offsets; a few of the
        cluster's other topics
    (d) the events, acknowledged
    (e) the closing record

Where the offsets log is not read (`KafkaCluster.reads_log`), (b) is left out, (c) has membership and committed offsets
as well.

Any failure on the way ends the round; it is never continued. Then, no longer part of it, the questions by timestamp
whose answers later rounds tell.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

from kafka.errors import KafkaError

from streaming.config import KafkaSettings, Settings
from streaming.lifecycle import room_log
from streaming.offsets_log import partition_for
from streaming.probe.clients import open_admin
from streaming.probe.deadline import Deadline
from streaming.probe.exceptions import NoOffsetsLogError, RoundAbandonedError, error_text
from streaming.probe.kafka.brokers import brokers_after, is_outdated
from streaming.probe.kafka.cluster import KafkaCluster, LogPositions
from streaming.probe.kafka.cluster_topics import gone, turns_after
from streaming.probe.kafka.holds import advance_holds, reported_holds
from streaming.probe.kafka.look import RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.observe import cluster_topic_events, round_events, seen_round
from streaming.probe.kafka.source import Source, choose, is_readable
from streaming.probe.readback import remember
from streaming.probe.rounds_probe import GroupSettings, RoundsProbe
from streaming.probe.standby import Identity, Turn
from streaming.probe.writer import RoundWriter
from streaming.records import ADMIN, LOG, RoundClosed


def one_round(
    cluster: KafkaCluster,
    writer: RoundWriter,
    turn: Turn,
    settings: Settings,
    rules: GroupSettings,
    memory: Memory,
    deadline: Deadline,
) -> tuple[RoundClosed, Memory]:
    """Run one round.

    Args:
        cluster: The cluster to observe.
        writer: Where the round is written.
        turn: Opens it, if it is this probe's turn.
        settings: Name of the cluster, filters.
        rules: What the settings say of groups.
        memory: From the last closed round.
        deadline: When the round is given up.

    Returns:
        Its closing record, and the memory for the next round.

    Raises:
        RoundAbandonedError: It did not close, as far as we know; `memory` may be out of date: read it back.
        NoOffsetsLogError: It was not even opened.
        AnotherProbeError: Another probe makes rounds, and goes on.
        SetupError: The topic of the rounds has a wrong setting.
        StopRequestedError: The probe is to stop.
    """
    # The leaders of the offsets log are requested before the round opens: they say nothing about any group, and
    # without a log there is no round.
    log = cluster.offsets_log(deadline)
    opened = turn.open(writer, deadline)
    positions = cluster.log_positions(log, deadline) if cluster.reads_log else LogPositions((), ())
    holds = advance_holds(memory.holds, positions.stable, positions.end, opened.time)
    head = RoundHead(
        cluster=settings.cluster,
        cluster_id=log.metadata.cluster_id,
        number=opened.number,
        time=opened.time,
        log=positions.stable,
        holds=cluster.name_holders(log, holds, deadline),
        configured=rules.of,
    )
    brokers = brokers_after(
        memory.brokers, log.metadata.hosts, log.coordinators, opened.number, opened.time, memory.time, memory.outdated
    )
    outdated = memory.outdated + 1 if is_outdated(brokers, log.coordinators) else 0
    look = cluster.observe_groups(log, memory, opened.time, deadline)
    asked = cluster.ask_topics(log, look, memory.turns, opened.time, deadline)
    ended = gone(memory.turns, asked, settings.watches_cluster_topic)
    turns = turns_after(memory.turns, asked, ended, opened.time)
    after = replace(memory_after(head, look, memory, turns), brokers=brokers, outdated=outdated)
    seen = None if cluster.reads_log else seen_round(head, look, memory, after, settings.job.heartbeat_ms)
    if seen is not None:
        after = replace(after, told=seen.told)
    events = round_events(head, look, memory, after, settings.filters, settings.job.heartbeat_ms, seen)
    of_topics = cluster_topic_events(head, asked, ended, look, memory)
    written = writer.write(opened, [*of_topics, *events], deadline)
    closed = writer.close_round(
        opened,
        written,
        (positions.stable, positions.end) if cluster.reads_log else None,
        log.metadata.cluster_id,
        deadline,
        reported_holds(
            head.holds, positions.end, (partition_for(group, len(head.log), head.cluster_id) for group in look.groups)
        ),
        untold=len(look.groups.keys() - {event.key for event in events}),
        topics_since=turns.since,
        offsets_retention_minutes=cluster.offsets_retention(log, deadline),
        source=LOG if cluster.reads_log else ADMIN,
        brokers=brokers,
    )
    cluster.ask_timestamps(deadline)
    return closed, after


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
