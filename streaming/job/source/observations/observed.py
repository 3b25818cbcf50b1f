"""From single events to the core's values: a topic of a group, a topic of the cluster, a RocketMQ group."""

from __future__ import annotations

import struct
from collections.abc import Callable

from streaming.events import ClusterTopicEvent, GroupEvent, RocketMQGroupEvent, TopicEvent
from streaming.job.source.observations.event_rounds import EventRound
from streaming.job.source.plan import LATEST_MS
from streaming.records import (
    ClusterTopicObservation,
    RocketMQObservation,
    TopicObservation,
    TopicRetention,
    UnreadTimestamp,
)

# Memory of an `UnreadTimestamp` with its place in a dict.
_UNREAD_BYTES = 250


def rocketmq_observation(
    event: RocketMQGroupEvent, current: EventRound, watches_topic: Callable[[str], bool]
) -> RocketMQObservation:
    """What one round saw of a RocketMQ group, as the core gets it: with the topics that pass the filters."""
    since, until = rest_of(event)
    return RocketMQObservation(
        round=current.round,
        time=event.time,
        gone=event.gone,
        brokers=event.brokers,
        members=event.members,
        topics=tuple(topic for topic in event.topics if watches_topic(topic.topic)),
        idle=event.idle,
        cut=event.cut,
        elapsed=current.elapsed,
        closed=current.closed,
        rested_since=since,
        rested_until=until,
        name_servers=event.name_servers,
        configured=event.configured,
    )


def rest_of(event: GroupEvent | RocketMQGroupEvent) -> tuple[int, int]:
    """The times between which a group rested, ms; -1 and -1 if the event has none, or impossible ones.

    An older probe wrote an end before the start if the clock was ahead at the start.
    """
    if event.rested is None or not 0 <= event.rested[0] <= event.rested[1] <= LATEST_MS:
        return -1, -1
    return event.rested


def cluster_topic_observation(event: ClusterTopicEvent, current: EventRound) -> ClusterTopicObservation:
    """One topic of the cluster in one round."""
    return ClusterTopicObservation(
        round=current.round,
        time=event.time,
        elapsed=current.elapsed,
        gone=event.gone,
        topic_id=event.topic_id,
        end=event.end,
        start=event.start,
        leaders=event.leaders,
        sizes=event.sizes,
        unsized=event.unsized,
        groups=event.groups,
        readers=event.readers,
        hidden=event.hidden,
    )


def topic_observation(event: TopicEvent) -> TopicObservation:
    """One topic of a Kafka group in one round."""
    kept = event.retention
    return TopicObservation(
        topic=event.topic,
        topic_id=event.topic_id,
        partitions=event.partitions,
        high_watermarks=_packed(event.end),
        last_stable_offsets=_packed(event.stable),
        log_start_offsets=_packed(event.start),
        racks=event.racks,
        retention=TopicRetention(kept.ms, kept.bytes, kept.deletes, kept.append_time) if kept is not None else None,
        unread={one.partition: UnreadTimestamp(one.offset, one.reached, one.below, one.own) for one in event.unread},
    )


def topic_bytes(observation: TopicObservation) -> int:
    """Approximate memory of an observation's offsets, racks and timestamps."""
    racks = sum(len(rack) + 60 for racks in observation.racks or () for rack in racks) + 8 * len(
        observation.racks or ()
    )
    return (
        len(observation.high_watermarks)
        + len(observation.last_stable_offsets)
        + len(observation.log_start_offsets)
        + racks
        + _UNREAD_BYTES * len(observation.unread)
    )


def _packed(offsets: tuple[int, ...]) -> bytes:
    return struct.pack(f"<{len(offsets)}q", *offsets)
