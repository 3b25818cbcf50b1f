"""From what a round saw to the events of its groups. Pure: no Kafka client, no clock.

Nothing here sends a request, so every rule can be tested with literals. The events of the cluster's topics are in
`topic_events.py`, what the next round must know in `memory.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.config import Filters
from streaming.events import (
    EVENTS_VERSION,
    Event,
    GroupEvent,
    GroupGone,
    SeenGroupEvent,
    SeenGroupGone,
    TopicEvent,
    UnreadTimestamp,
)
from streaming.offsets_log import partition_for
from streaming.probe.idle import Reporting, is_its_turn, reporting, rested
from streaming.probe.kafka.holds import lasting
from streaming.probe.kafka.look import GroupsSeen, RoundHead, Topic
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.seen import SeenRound, Telling, tell


def round_events(
    head: RoundHead,
    look: GroupsSeen,
    memory: Memory,
    after: Memory,
    filters: Filters,
    period_ms: int,
    seen: SeenRound | None = None,
) -> list[tuple[str, Event]]:
    """The events of one round, each with the group that keys it.

    Sorted by group id; a group's `GroupEvent` comes before its `TopicEvent`s and what is seen of it.
    Groups that the round before had and this one has not come as `GroupGone`. Groups that are gone, and idle groups
    that this round reports, come before the others.

    Args:
        head: What all events share.
        look: What the round saw.
        memory: What the closed round before left.
        after: What this round leaves, as `memory_after` gives it.
        filters: What is watched.
        period_ms: An idle group is reported once within it.
        seen: Membership and offsets to report, in a round that does not read the log.
    """
    resting: list[tuple[str, Event]] = []
    others: list[tuple[str, Event]] = []
    for group in sorted(look.groups.keys() | memory.topics.keys()):
        if group not in look.groups:
            resting.append((group, _gone(head, group, filters)))
            continue
        reported = reporting(group, memory.rest, after.rest, period_ms)
        if reported is not Reporting.NOT_AT_ALL:
            idle = reported is Reporting.AS_IDLE
            stretch = None if idle else rested(group, memory.rest)
            # The job remembers these, so a round sends them when they are news, and once in a period.
            unread = (
                look.unread.get(group, {})
                if idle
                or memory.unread.get(group) != after.unread.get(group)
                or is_its_turn(group, memory.rest, after.rest, period_ms)
                else {}
            )
            telling = seen.telling.get(group, Telling()) if seen is not None else None
            events = _events_of_group(head, look, memory, group, stretch, unread, telling, idle=idle)
            (resting if idle else others).extend((group, event) for event in events)
    return resting + others


def _events_of_group(
    head: RoundHead,
    look: GroupsSeen,
    memory: Memory,
    group: str,
    stretch: tuple[int, int] | None,
    unread: Mapping[str, tuple[UnreadTimestamp, ...]],
    telling: Telling | None,
    *,
    idle: bool,
) -> list[Event]:
    listed, description = look.groups[group], look.descriptions.get(group)
    topics = [topic for topic in look.topics_of_groups[group] if topic in look.topics]
    of_topics = [_topic_event(head, group, topic, look.topics[topic], unread.get(topic, ())) for topic in topics]
    if telling is not None:
        return [
            SeenGroupEvent(
                v=EVENTS_VERSION,
                cluster=head.cluster,
                round=head.number,
                time=head.time,
                group=group,
                log_partition=-1,
                log_position=-1,
                topics=len(topics),
                state=description.state if description else listed.state,
                protocol_type=(description.protocol_type if description else "") or listed.protocol_type,
                group_type=listed.group_type,
                cluster_id=head.cluster_id,
                idle=idle,
                rested=stretch,
                configured=head.configured(group),
                seen=len(telling.events),
                looked=telling.looked,
                absent_at=None if group in memory.topics or memory.rest.time < 0 else memory.rest.time,
            ),
            *of_topics,
            *telling.events,
        ]
    partition = partition_for(group, len(head.log), head.cluster_id)
    hold = lasting(head.holds[partition])
    holder = hold.holder if hold is not None else None
    first = GroupEvent(
        v=EVENTS_VERSION,
        cluster=head.cluster,
        round=head.number,
        time=head.time,
        group=group,
        log_partition=partition,
        log_position=head.log[partition],
        topics=len(topics),
        # Requested after the listing, and together with the subscriptions.
        state=description.state if description else listed.state,
        protocol_type=(description.protocol_type if description else "") or listed.protocol_type,
        group_type=listed.group_type,
        held_since=hold.since if hold is not None else None,
        cluster_id=head.cluster_id,
        held_by_producer=holder.producer_id if holder is not None else None,
        held_by=holder.transactional_id if holder is not None else None,
        idle=idle,
        rested=stretch,
        configured=head.configured(group),
    )
    return [first, *of_topics]


def _topic_event(
    head: RoundHead, group: str, topic: str, seen: Topic, unread: tuple[UnreadTimestamp, ...]
) -> TopicEvent:
    return TopicEvent(
        v=EVENTS_VERSION,
        cluster=head.cluster,
        round=head.number,
        group=group,
        topic=topic,
        partitions=seen.partitions,
        topic_id=seen.topic_id,
        end=seen.end,
        stable=seen.stable,
        start=seen.start,
        racks=seen.racks,
        retention=seen.retention,
        unread=unread,
    )


def seen_round(head: RoundHead, look: GroupsSeen, memory: Memory, after: Memory, period_ms: int) -> SeenRound:
    """What a round that does not read the log reports of membership and committed offsets.

    Args:
        head: What all events share.
        look: What the round saw.
        memory: What the closed round before left.
        after: What this round leaves, as `memory_after` gives it.
        period_ms: Everything is reported once within it.
    """
    reports = {group: reporting(group, memory.rest, after.rest, period_ms) for group in look.groups}
    whole = [
        group
        for group, report in reports.items()
        if report is Reporting.AS_IDLE or is_its_turn(group, memory.rest, after.rest, period_ms)
    ]
    silent = [group for group, report in reports.items() if report is Reporting.NOT_AT_ALL]
    return tell(head.cluster, head.number, look.seen, memory.told, whole, silent)


def _gone(head: RoundHead, group: str, filters: Filters) -> GroupGone:
    reason = "deleted" if filters.watches_group(group) else "filtered"
    if not head.log:
        return SeenGroupGone(EVENTS_VERSION, head.cluster, head.number, head.time, group, -1, -1, reason)
    partition = partition_for(group, len(head.log), head.cluster_id)
    return GroupGone(
        v=EVENTS_VERSION,
        cluster=head.cluster,
        round=head.number,
        time=head.time,
        group=group,
        log_partition=partition,
        log_position=head.log[partition],
        reason=reason,
    )
