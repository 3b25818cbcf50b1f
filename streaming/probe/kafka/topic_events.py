"""The events of the cluster's topics: what a round has learned of them, and which watched groups read them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streaming.events import EVENTS_VERSION, ClusterTopicEvent
from streaming.probe.kafka.look import EMPTY, Description, GroupsSeen, RoundHead
from streaming.probe.kafka.memory import Memory
from streaming.probe.kafka.turns import AskedTopics
from streaming.records import LONGEST_READER, MOST_READERS, ClusterTopicObservation

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
        if topic.absent is None:
            saw[name] = ClusterTopicObservation(
                round=head.number,
                time=head.time,
                topic_id=topic.topic_id,
                end=topic.end,
                start=topic.start,
                leaders=topic.leaders,
                sizes=topic.sizes,
                unsized=topic.unsized,
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
        if group.group_type == "share":
            return "share_groups"
        description = look.descriptions.get(name)
        if name not in look.committed or not (group.state == EMPTY or _is_known(description, name in memory.topics)):
            found = "undescribed"
    return found


def _is_known(description: Description | None, is_remembered: bool) -> bool:
    """Whether a group's subscriptions are known: from this round, or for as long as it rebalances from one before."""
    if description is None:
        return False
    return description.complete or (is_remembered and description.state in _REBALANCING)
