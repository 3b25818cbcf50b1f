"""What the brokers' answers about groups and topics mean: from kafka-python's values to those of a round. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streaming.offsets_log import Rejected, decode_subscription
from streaming.probe.kafka.followed import Committed
from streaming.probe.kafka.look import EMPTY, STABLE, Description, ListedGroup
from streaming.probe.kafka.requests import OffsetKind, Refused, TopicMetadata
from streaming.probe.kafka.seen import (
    SeenGroup,
    classic_membership,
    consumer_membership,
    share_membership,
    streams_membership,
)
from streaming.records import SHARE, TopicObservation, TopicRetention, pack_offsets

_CONSUMER = "consumer"
_STREAMS = "streams"

# In these states the answer has the subscriptions of all members.
_STATES_WITH_SUBSCRIPTIONS = (STABLE, EMPTY)

_UNKNOWN_OFFSET = -1


def seen_groups(
    groups: Mapping[str, ListedGroup], descriptions: Mapping[str, Description], committed: Mapping[str, Committed]
) -> dict[str, SeenGroup]:
    """What a round reports of the groups where it does not read the log."""
    return {
        name: SeenGroup(
            # An empty group need not be described to know that it has no members.
            looked=not descriptions[name].failed if name in descriptions else group.state == EMPTY,
            membership=descriptions[name].membership if name in descriptions else None,
            offsets=committed[name].offsets if name in committed else None,
        )
        for name, group in groups.items()
    }


def classic_description(answer: Any, *, tells: bool) -> Description:
    """A group of the classic protocol, from its part of a DescribeGroups response.

    Args:
        answer: kafka-python's `DescribedGroup`.
        tells: With the members, for a round that does not read the log.
    """
    # Before they are Stable, members have no assignment, and coordinators do not tell their subscriptions.
    membership = classic_membership(answer) if tells and answer.group_state == STABLE else None
    if answer.protocol_type not in (_CONSUMER, ""):
        # Connect, schema registries: their members' metadata are not subscriptions.
        return Description(answer.group_state, answer.protocol_type, frozenset(), complete=True, membership=membership)
    subscribed: set[str] = set()
    # During a rebalance coordinators list members without their metadata, or none yet.
    complete = answer.group_state in _STATES_WITH_SUBSCRIPTIONS
    for member in answer.members:
        subscription = decode_subscription(bytes(member.member_metadata)) if member.member_metadata else None
        if subscription is None or isinstance(subscription, Rejected):
            complete = False
        else:
            subscribed.update(subscription.topics)
    return Description(answer.group_state, answer.protocol_type, frozenset(subscribed), complete, membership)


def consumer_description(answer: Any, *, tells: bool) -> Description:
    """A group of the consumer protocol (KIP-848), from its part of a ConsumerGroupDescribe response; args as above."""
    # In this protocol the subscriptions are reported in every state. The broker resolves a regular expression: the
    # topics it found are those of the assignments.
    subscribed = {topic for member in answer.members for topic in member.subscribed_topic_names}
    for member in answer.members:
        if member.subscribed_topic_regex:
            subscribed.update(of_topic.topic_name for of_topic in member.assignment.topic_partitions)
            subscribed.update(of_topic.topic_name for of_topic in member.target_assignment.topic_partitions)
    membership = consumer_membership(answer) if tells else None
    return Description(answer.group_state, _CONSUMER, frozenset(subscribed), complete=True, membership=membership)


def share_description(answer: Any, *, tells: bool) -> Description:
    """A share group (KIP-932), from its part of a ShareGroupDescribe response; args as above."""
    subscribed = {topic for member in answer.members for topic in member.subscribed_topic_names}
    membership = share_membership(answer) if tells else None
    return Description(answer.group_state, SHARE, frozenset(subscribed), complete=True, membership=membership)


def streams_description(answer: Any, settings: Mapping[str, str] | None, *, tells: bool) -> Description:
    """A streams group (KIP-1071), from its part of a StreamsGroupDescribe response.

    Its internal topics count as well: whether they exist, and with how many partitions, decides whether it gets tasks.

    Args:
        answer: kafka-python's `DescribedGroup`.
        settings: The settings that its assignor goes by; None where they are not known.
        tells: With the members, for a round that does not read the log.
    """
    # The broker resolves regular expressions once the topology is ready; before, it has no subtopologies to tell.
    parts = answer.topology.subtopologies if answer.topology is not None else None
    topics = {
        topic
        for part in parts or ()
        for topic in (
            *part.source_topics,
            *(of.name for of in (*part.repartition_source_topics, *part.state_changelog_topics)),
        )
    }
    membership = streams_membership(answer, settings) if tells else None
    return Description(
        answer.group_state, _STREAMS, frozenset(topics), complete=parts is not None, membership=membership
    )


def leaders_of(topics: Mapping[str, TopicMetadata | Refused]) -> dict[tuple[str, int], int]:
    """Node id of the leader by topic and partition; partitions without a leader are missing."""
    return {
        (name, index): leader
        for name, metadata in topics.items()
        if isinstance(metadata, TopicMetadata)
        for index, leader in enumerate(metadata.leaders)
        if leader is not None
    }


def topic_of(
    name: str,
    metadata: TopicMetadata,
    racks: bool,
    offsets: Mapping[OffsetKind, Mapping[tuple[str, int], int]],
    retention: TopicRetention | None,
) -> TopicObservation:
    """One topic.

    Args:
        name: The topic.
        metadata: Its partitions, as the brokers' metadata have them.
        racks: Some broker has a rack.
        offsets: By kind, topic and partition; -1 where one is missing.
        retention: How long its records are kept, as far as it was asked for.
    """

    def of(kind: OffsetKind) -> list[int]:
        found = offsets[kind]
        return [found.get((name, index), _UNKNOWN_OFFSET) for index in range(len(metadata.leaders))]

    end = of(OffsetKind.END)
    # Requested after the end: records produced in between do not count for this round.
    stable = [min(stable, high) for stable, high in zip(of(OffsetKind.STABLE), end, strict=True)]
    return TopicObservation(
        name,
        metadata.topic_id,
        len(metadata.leaders),
        pack_offsets(end),
        pack_offsets(stable),
        pack_offsets(of(OffsetKind.START)),
        metadata.racks if racks else None,
        retention,
    )
