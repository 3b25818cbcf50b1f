"""What the brokers' answers about groups and topics mean: from kafka-python's values to those of a round. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from streaming.offsets_log import Rejected, decode_subscription, printed, seen_member
from streaming.probe.kafka.followed import Committed
from streaming.probe.kafka.look import EMPTY, MOST_TOLD, STABLE, Description, GroupMembers, ListedGroup, SeenGroup
from streaming.probe.kafka.requests import OffsetKind, Refused, TopicMetadata
from streaming.records import (
    CONSUMER,
    SHARE,
    STREAMS,
    IdPartitions,
    InternalTopics,
    SeenClassic,
    SeenMember,
    SeenModern,
    SeenTasks,
    SeenTopology,
    TopicObservation,
    TopicRetention,
    pack_offsets,
)

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
    membership = _classic_membership(answer) if tells and answer.group_state == STABLE else None
    if answer.protocol_type not in (CONSUMER, ""):
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


def assigned_description(
    answer: Any, group_type: str, settings: Mapping[str, str] | None = None, *, tells: bool
) -> Description:
    """A group that the broker assigns, from its part of the response that describes groups of its type.

    Args:
        answer: kafka-python's `DescribedGroup`.
        group_type: `CONSUMER`, `SHARE` or `STREAMS`.
        settings: The settings that the assignor of a streams group goes by; None where they are not known.
        tells: With the members, for a round that does not read the log.
    """
    complete = True
    if group_type == STREAMS:
        # The broker resolves regular expressions once the topology is ready; before, it has no subtopologies to tell.
        complete = answer.topology is not None and answer.topology.subtopologies is not None
        topics = {topic for part in _subtopologies(answer.topology) for topic in _topics_of(part)}
    else:
        # In these protocols the subscriptions are reported in every state. The broker resolves a regular expression:
        # the topics it found are those of the assignments.
        topics = {topic for member in answer.members for topic in member.subscribed_topic_names}
        topics |= {
            of_topic.topic_name
            for member in answer.members
            if group_type == CONSUMER and member.subscribed_topic_regex
            for assignment in (member.assignment, member.target_assignment)
            for of_topic in assignment.topic_partitions
        }
    membership = _assigned_membership(answer, group_type, settings) if tells else None
    return Description(answer.group_state, group_type, frozenset(topics), complete, membership)


def _topics_of(part: Any) -> Iterator[str]:
    """All topics, internal ones as well: that they exist, with how many partitions, decides whether there are tasks."""
    yield from part.source_topics
    yield from (topic.name for topic in (*part.repartition_source_topics, *part.state_changelog_topics))


_RawMember = tuple[str, str | None, str, str, bytes, bytes]
"""Member id, instance id, client id, host, bytes of subscription and assignment: what `seen_member` decodes."""


def _classic_membership(answer: Any) -> GroupMembers:
    """Members of a group in the state Stable, from an answer to DescribeGroups."""
    members = tuple(
        (
            member.member_id,
            member.group_instance_id,
            member.client_id or "",
            member.client_host or "",
            bytes(member.member_metadata or b""),
            bytes(member.member_assignment or b""),
        )
        for member in answer.members
    )
    kind, protocol = answer.protocol_type, answer.protocol_data or ""
    return GroupMembers(hash((kind, protocol, members)), partial(_read_classic, kind, protocol, members))


def _read_classic(kind: str, protocol: str, members: tuple[_RawMember, ...]) -> SeenClassic:
    if sum(len(subscription) + len(assignment) for *_, subscription, assignment in members) > MOST_TOLD:
        return SeenClassic(kind, protocol, (), more=len(members))
    told = tuple([seen_member(*one, protocol_type=kind, protocol=protocol) for one in members])
    return SeenClassic(kind, protocol, told)


_MEMBER_TYPES: Final = {0: True, 1: False}
"""`MemberType` of ConsumerGroupDescribe: 0 for the classic protocol, 1 for the consumer protocol, -1 unknown."""


def _assigned_membership(answer: Any, group_type: str, settings: Mapping[str, str] | None) -> GroupMembers:
    """Members of a group that the broker assigns; of a streams group with its topology and its settings."""
    topology = None
    if group_type == STREAMS:
        parts = _subtopologies(answer.topology)
        topology = SeenTopology(
            epoch=answer.topology.epoch if answer.topology is not None else -1,
            ready=answer.group_state != _NOT_READY,
            subtopologies=tuple(
                [
                    (
                        part.subtopology_id,
                        tuple(part.source_topics),
                        (),
                        tuple([topic.name for topic in part.repartition_source_topics]),
                    )
                    for part in parts
                ]
            ),
            internal=tuple(
                [
                    InternalTopics(
                        tuple([(topic.name, topic.partitions) for topic in part.state_changelog_topics]),
                        tuple([topic.partitions for topic in part.repartition_source_topics]),
                        tuple(part.repartition_sink_topics),
                    )
                    for part in parts
                ]
            ),
            settings=dict(settings) if settings is not None else None,
        )
    assignor = "" if group_type == STREAMS else answer.assignor_name
    members = tuple([_MEMBERS[group_type](member) for member in answer.members])
    seen = SeenModern(answer.group_epoch, answer.assignment_epoch, assignor, members, topology=topology)
    return GroupMembers(hash(msgspec.msgpack.encode(seen)), lambda: seen)


_NOT_READY: Final = "NotReady"
"""State of a streams group whose topology lacks topics, or has some with wrong partition counts."""


def _member(member: Any, **others: Any) -> SeenMember:
    """A member by what the brokers' answers say of each type, and by what its own type has."""
    return SeenMember(
        member_id=member.member_id,
        epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        rack=member.rack_id,
        **{"instance_id": None, "topics": (), "regex": None, "target": (), "classic": None} | others,
    )


def _consumer_member(member: Any) -> SeenMember:
    return _member(
        member,
        instance_id=member.instance_id,
        topics=tuple(member.subscribed_topic_names),
        regex=member.subscribed_topic_regex or None,
        owned=_partitions(member.assignment),
        target=_partitions(member.target_assignment),
        classic=_MEMBER_TYPES.get(member.member_type),
    )


def _share_member(member: Any) -> SeenMember:
    """There are no static members, and coordinators tell no targets."""
    return _member(member, topics=tuple(sorted(member.subscribed_topic_names)), owned=_partitions(member.assignment))


def _streams_member(member: Any) -> SeenMember:
    tags, endpoint = {tag.key: tag.value for tag in member.client_tags}, member.user_endpoint
    return _member(
        member,
        instance_id=member.instance_id,
        owned=_tasks(member.assignment.active_tasks),
        target=_tasks(member.target_assignment.active_tasks),
        classic=member.is_classic,
        tasks=SeenTasks(
            process_id=member.process_id,
            topology_epoch=member.topology_epoch,
            standby=_tasks(member.assignment.standby_tasks),
            warmup=_tasks(member.assignment.warmup_tasks),
            target_standby=_tasks(member.target_assignment.standby_tasks),
            target_warmup=_tasks(member.target_assignment.warmup_tasks),
            client_tags=tags,
            endpoint=(endpoint.host, endpoint.port) if endpoint is not None else None,
        ),
    )


_MEMBERS: Final = {CONSUMER: _consumer_member, SHARE: _share_member, STREAMS: _streams_member}


def _subtopologies(topology: Any) -> Sequence[Any]:
    """The subtopologies of an answer: without a source topic yet, a topology has none."""
    return (topology.subtopologies if topology is not None else None) or ()


def _tasks(tasks: Any) -> IdPartitions:
    return tuple(sorted((of.subtopology_id, tuple(sorted(of.partitions))) for of in tasks))


def _partitions(assignment: Any) -> IdPartitions:
    # A coordinator promises no order; the same assignment should look the same.
    return tuple(
        sorted(
            (printed(of_topic.topic_id.bytes) or "", tuple(sorted(of_topic.partitions)))
            for of_topic in assignment.topic_partitions
        )
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
