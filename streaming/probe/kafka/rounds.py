"""One round, from its opening to its closing record.

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

from dataclasses import replace

from streaming.config import Settings
from streaming.offsets_log import partition_for
from streaming.probe.deadline import Deadline
from streaming.probe.group_settings import GroupSettings
from streaming.probe.kafka.brokers import brokers_after, is_outdated
from streaming.probe.kafka.cluster import KafkaCluster, LogPositions
from streaming.probe.kafka.holds import advance_holds, reported_holds
from streaming.probe.kafka.look import RoundHead
from streaming.probe.kafka.memory import Memory, memory_after
from streaming.probe.kafka.observe import round_events, seen_round
from streaming.probe.kafka.topic_events import cluster_topic_events
from streaming.probe.kafka.turns import gone, turns_after
from streaming.probe.standby import Turn
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
    look = cluster.look(log, memory, opened.time, deadline)
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
