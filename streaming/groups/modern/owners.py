"""Who owns which partitions of a group that the broker assigns, and which topics its members read, by name."""

from __future__ import annotations

from streaming.groups.kind import Held
from streaming.groups.modern.group import subscribed, subscriptions_of
from streaming.groups.modern.members import read_by_tasks, topic_names
from streaming.groups.state import GroupState
from streaming.records import CONSUMER, SHARE, STREAMS, ModernMember


def modern_owners(state: GroupState) -> dict[str, dict[int, ModernMember]]:
    """The current owner of each partition, by topic name; a partition being revoked still has its owner.

    Empty for share groups, where a partition may have several members.
    """
    group = state.modern.group
    if state.modern.key_type is None or group is None or group.group_type == SHARE:
        return {}
    names = topic_names(state)
    owners: dict[str, dict[int, ModernMember]] = {}
    for member_id, member in group.members.items():
        current = group.currents.get(member_id)
        owned = (*current.partitions, *current.revoking) if current is not None else ()
        if group.group_type == STREAMS:
            for read in read_by_tasks(state, group.topology, owned) or ():
                owners.setdefault(read.topic, {}).update(dict.fromkeys(read.partitions, member))
            continue
        for topic_id, numbers in owned:
            if topic_id in names:
                of_topic = owners.setdefault(names[topic_id], {})
                for number in numbers:
                    of_topic.setdefault(number, member)
    return owners


def modern_topics(state: GroupState) -> frozenset[str] | None:
    """Names of the topics with a subscriber in a consumer group; None if unknown."""
    group = state.modern.group
    if state.modern.key_type is None or group is None or group.group_type != CONSUMER or not group.members:
        return None
    topics: set[str] = set()
    for of_some in set(subscriptions_of(group).values()):
        if of_some is None:
            return None
        topics |= of_some
    return frozenset(topics)


def held_by_members(state: GroupState) -> list[Held] | None:
    """What each member owns now, in the order in which they joined; a partition being revoked still has its owner.

    Returns:
        None without members, and for share groups.
    """
    group = state.modern.group
    if not consumers_of(state) or group is None:
        return None
    owned: dict[str, dict[str, list[int]]] = {member_id: {} for member_id in group.members}
    for topic, partitions in modern_owners(state).items():
        for partition, member in partitions.items():
            owned[member.member_id].setdefault(topic, []).append(partition)
    return [Held(member, owned[member_id]) for member_id, member in group.members.items()]


def consumers_of(state: GroupState) -> frozenset[str]:
    """Ids of the members that may own partitions."""
    group = state.modern.group
    if state.modern.key_type is None or group is None or group.group_type == SHARE:
        return frozenset()
    return frozenset(group.members)


def assignment_of(state: GroupState) -> tuple[int, int] | None:
    """Numbers that change whenever what members own does; None without members."""
    group = state.modern.group
    if state.modern.key_type is None or group is None or not group.members:
        return None
    newest = max((current.record for current in group.currents.values()), default=-1)
    return max(newest, *(member.record for member in group.members.values())), len(group.members)


def topics_of(state: GroupState, member: ModernMember) -> frozenset[str] | None:
    """Topics whose partitions a member may have; None if unknown, and in a streams group, which assigns tasks."""
    group = state.modern.group
    return None if group is None or group.group_type != CONSUMER else subscribed(group, member)
