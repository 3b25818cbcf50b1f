"""From what a round saw to its events: of the groups, and of the cluster's topics. Pure: no Kafka client, no clock.

Nothing here sends a request, so every rule can be tested with literals. What the next round must know is in
`memory.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from streaming.config import Filters
from streaming.events import EVENTS_VERSION, ClusterTopicEvent, GroupEvent
from streaming.offsets_log import partition_for
from streaming.probe.idle import Reporting, is_its_turn, reporting, rested
from streaming.probe.kafka.cluster_topics import AskedTopics
from streaming.probe.kafka.holds import BlockedPartition, lasting
from streaming.probe.kafka.look import EMPTY, Description, GroupsSeen, RoundHead, SeenRound, report
from streaming.probe.kafka.memory import Memory
from streaming.records import (
    ADMIN,
    LONGEST_READER,
    MOST_READERS,
    SHARE,
    ClusterTopicObservation,
    GroupObservation,
    Seen,
    TopicObservation,
    UnreadTimestamp,
)

_UNKNOWN: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("state", "protocol_type", "group_type", "gone", "held_since")),
    **dict.fromkeys(("log_partition", "log_position"), -1),
    "topics": (),
}

_REBALANCING = ("PreparingRebalance", "CompletingRebalance")
"""In these states coordinators do not report subscriptions."""


def cluster_topic_events(
    head: RoundHead, asked: AskedTopics, ended: Mapping[str, str], look: GroupsSeen, memory: Memory
) -> list[ClusterTopicEvent]:
    """The events of the cluster's topics, sorted by topic.

    Args:
        head: What all events share.
        asked: What the round has learned of them.
        ended: Topics that are gone with this round, with the reason.
        look: What the round saw of the groups: who reads them.
        memory: What the closed round before left.
    """
    readers = _readers(look, asked.topics)
    hidden = asked.hidden or _unknown_readers(look, memory) if asked.topics else None
    saw = {name: ClusterTopicObservation(head.number, head.time, gone=reason) for name, reason in ended.items()}
    for name, topic in asked.topics.items():
        if topic.gone is None:
            saw[name] = msgspec.structs.replace(
                topic,
                round=head.number,
                time=head.time,
                groups=len(readers[name]),
                readers=tuple([group[:LONGEST_READER] for group in sorted(readers[name])[:MOST_READERS]]),
                hidden=hidden,
            )
    return [ClusterTopicEvent(EVENTS_VERSION, head.cluster, name, saw[name]) for name in sorted(saw)]


def _readers(look: GroupsSeen, topics: Iterable[str]) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {topic: [] for topic in topics}
    if readers:
        for group, of_group in look.topics_of_groups.items():
            for topic in of_group:
                if topic in readers:
                    readers[topic].append(group)
    return readers


def _unknown_readers(look: GroupsSeen, memory: Memory) -> str | None:
    """Why groups may read topics that this round does not know of; None when it knows all topics of all groups."""
    found = None
    for name, group in look.groups.items():
        if group.group_type == SHARE:
            if name not in look.committed:
                return "share_groups"
            continue
        description = look.descriptions.get(name)
        if name not in look.committed or not (group.state == EMPTY or _is_known(description, name in memory.topics)):
            found = "undescribed"
    return found


def _is_known(description: Description | None, is_remembered: bool) -> bool:
    """Whether a group's subscriptions are known: from this round, or for as long as it rebalances from one before."""
    if description is None:
        return False
    return description.complete or (is_remembered and description.state in _REBALANCING)


def round_events(
    head: RoundHead,
    look: GroupsSeen,
    memory: Memory,
    after: Memory,
    filters: Filters,
    period_ms: int,
    seen: SeenRound | None = None,
) -> list[GroupEvent]:
    """The events of one round.

    Sorted by group id. Groups that the round before had and this one has not come as gone. Groups that are gone, and
    idle groups that this round reports, come before the others.

    Args:
        head: What all events share.
        look: What the round saw.
        memory: What the closed round before left.
        after: What this round leaves, as `memory_after` gives it.
        filters: What is watched.
        period_ms: An idle group is reported once within it.
        seen: Membership and offsets to report, in a round that does not read the log.
    """
    holds = [lasting(hold) for hold in head.holds]
    # Most of the time nothing is held; then finding each group's log partition can be saved.
    held = any(holds)
    topics = {
        names: tuple([look.topics[name] for name in names if name in look.topics])
        for names in set(look.topics_of_groups.values())
    }
    resting: list[GroupEvent] = []
    others: list[GroupEvent] = []
    for group in sorted(look.groups.keys() | memory.topics.keys()):
        if group not in look.groups:
            reason = "deleted" if filters.watches_group(group) else "filtered"
            resting.append(_event(head, group, gone=reason, seen=None if head.log else Seen(ADMIN)))
            continue
        reported = reporting(group, memory.rest, after.rest, period_ms)
        if reported is Reporting.NOT_AT_ALL:
            continue
        idle = reported is Reporting.AS_IDLE
        # The job remembers these, so a round sends them when they are news, and once in a period.
        unread = look.unread.get(group, {})
        if not (
            idle
            or memory.unread.get(group) != after.unread.get(group)
            or (unread and is_its_turn(group, memory.rest, after.rest, period_ms))
        ):
            unread = {}
        listed, description = look.groups[group], look.descriptions.get(group)
        since, until = (None if idle else rested(group, memory.rest)) or (-1, -1)
        event = _event(
            head,
            group,
            holds[partition_for(group, len(holds), head.cluster_id)] if held else None,
            # Requested after the listing, and together with the subscriptions.
            state=description.state if description else listed.state,
            protocol_type=(description.protocol_type if description else "") or listed.protocol_type,
            group_type=listed.group_type,
            topics=_with_unread(topics[look.topics_of_groups[group]], unread),
            cluster_id=head.cluster_id,
            idle=idle,
            rested_since=since,
            rested_until=until,
            seen=None if seen is None else _seen(seen, group, memory),
            configured=head.configured(group),
            shares=look.shares.get(group),
            connectors=look.connectors.get(group),
        )
        (resting if idle else others).append(event)
    return resting + others


def _with_unread(
    topics: tuple[TopicObservation, ...], unread: Mapping[str, dict[int, UnreadTimestamp]]
) -> tuple[TopicObservation, ...]:
    """A group's topics. Groups share a topic's object, unless timestamps of unread records make it the group's own."""
    if not unread:
        return topics
    return tuple(
        [
            msgspec.structs.replace(topic, unread=unread[topic.topic]) if topic.topic in unread else topic
            for topic in topics
        ]
    )


def _seen(seen: SeenRound, group: str, memory: Memory) -> Seen:
    told = seen.telling.get(group, Seen(ADMIN))
    if group in memory.topics or memory.rest.time < 0:
        return told
    return msgspec.structs.replace(told, absent_at=memory.rest.time)


def _event(head: RoundHead, group: str, hold: BlockedPartition | None = None, **saw: Any) -> GroupEvent:
    """An event of a group; its place in the log is laid beside it where it is read."""
    given = {**_UNKNOWN, **saw}
    if hold is not None:
        given |= {"held_since": hold.since, "held_by_producer": hold.producer_id, "held_by": hold.transactional_id}
    return GroupEvent(EVENTS_VERSION, head.cluster, group, GroupObservation(round=head.number, time=head.time, **given))


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
    whole = [group for group in reports if is_its_turn(group, memory.rest, after.rest, period_ms)]
    silent = [group for group, report in reports.items() if report is Reporting.NOT_AT_ALL]
    return report(head.number, look.seen, memory.told, whole, silent)
