"""The assignor of share groups, `simple`, before Kafka 4.2: 4.0 gives everything to everyone, 4.1 hashes member ids.

Follows `org.apache.kafka.coordinator.group.assignor.SimpleAssignor`; `simple_balanced.py` has that of 4.2 and later.
A partition may have several members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from assignors.assignment import Assignment, Partitions
from assignors.brokers.model import ServerGroup, Uuid
from assignors.context import spend
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import in_computed_map, in_hash_order, in_hash_set, string_hash

ShareUnit = tuple[Uuid, int]
"""A partition, by its topic's id."""

_FIRST_TABLE = 16
"""Size of a HashMap's first table."""


def give_all(group: ServerGroup) -> Assignment:
    """The assignment of 4.0 (early access): each member has every partition of its topics."""
    shared: dict[tuple[Uuid, ...], dict[str, Partitions]] = {}
    for member in group.members:
        topics = group.subscribed(member)
        if topics not in shared:
            shared[topics] = {uuid.text: range(group.counts[uuid.text]) for uuid in topics}
    return {member.member_id: shared[group.subscribed(member)] for member in group.members}


def hash_and_keep(group: ServerGroup) -> Assignment:
    """The assignment of 4.1: a partition by the hash of the member's id, then the previous target, then in turn.

    Raises:
        LeaderWouldFail: The class runs out of members, because it counts previous partitions that may not be assigned
            any more. No broker gets there: of a topic that exists, a group with members only ever initializes more.
        CannotTell: We cannot follow the order of a map.
    """
    if group.homogeneous:
        return _of_equal(group)
    return _of_different(group)


def assignable_of(group: ServerGroup) -> dict[str, Sequence[int]]:
    """Partitions that may be assigned, by topic id."""
    return {group.uuids[topic.topic_id].text: topic.assignable() for topic in group.topics.values()}


def unit_code(unit: ShareUnit) -> int:
    """`TopicIdPartition.hashCode()` of a record class, as an unsigned 32-bit number."""
    uuid, partition = unit
    return (31 * uuid.code + partition) & 0xFFFFFFFF


def held_in_set_order(group: ServerGroup) -> dict[str, dict[Uuid, list[int]]]:
    """Previous targets by member, members, topics and partitions each in the order of the coordinator's maps.

    Raises:
        CannotTell: We cannot follow that order.
    """
    held: dict[str, dict[Uuid, list[int]]] = {}
    for member in group.in_map_order():
        topics = held[member.member_id] = {}
        for uuid, at in group.target_in_map_order(member):
            listed = member.target[at][1]
            numbers = list(dict.fromkeys(listed))
            topics[uuid] = [numbers[place] for place in in_hash_set([n & 0xFFFFFFFF for n in numbers], len(listed))]
    return held


def _of_equal(group: ServerGroup) -> Assignment:
    members = [member.member_id for member in group.in_map_order()]
    final: dict[str, dict[ShareUnit, None]] = {member_id: {} for member_id in members}
    if not members:
        return {}
    assignable = assignable_of(group)
    subscribed = group.subscribed(group.in_map_order()[0])
    targets = [(uuid, number) for uuid in subscribed for number in assignable[uuid.text]]
    desired = -(-len(targets) // len(members))
    hashed = set()
    for member_id in members:
        if targets:
            unit = _by_hash(member_id, targets)
            hashed.add(unit)
            final[member_id][unit] = None
    taken = set(hashed)
    topics = set(subscribed)
    for unit, owners in _current(group):
        if unit[0] in topics and unit not in hashed:
            for member_id in owners:
                if len(final[member_id]) < desired:
                    final[member_id][unit] = None
                    taken.add(unit)
    _deal_with_count([unit for unit in targets if unit not in taken], members, final, desired)
    return by_topic(final)


def _of_different(group: ServerGroup) -> Assignment:
    units = {
        group.uuids[topic_id]: [(group.uuids[topic_id], number) for number in numbers]
        for topic_id, numbers in assignable_of(group).items()
    }
    by_id = {member.member_id: member for member in group.in_map_order()}
    # A map of its own, of those that subscribe to anything.
    members = in_hash_order([member_id for member_id, member in by_id.items() if member.topics])
    subscribers: dict[Uuid, list[str]] = {}
    new: dict[ShareUnit, list[str]] = {}
    targets: dict[ShareUnit, None] = {}
    for member_id in members:
        mine: list[ShareUnit] = []
        for uuid in group.subscribed(by_id[member_id]):
            spend(len(units[uuid]) // 4)
            if units[uuid]:
                subscribers.setdefault(uuid, []).append(member_id)
            mine += units[uuid]
        targets.update(dict.fromkeys(mine))
        if mine:
            new.setdefault(_by_hash(member_id, mine), []).append(member_id)
    current = dict(_current(group))
    turn: dict[Uuid, int] = {}
    for unit in [unit for unit in targets if unit not in new and unit not in current]:
        takers, at = subscribers[unit[0]], turn.get(unit[0], 0)
        new[unit] = [takers[at % len(takers)]]
        turn[unit[0]] = at + 1
    final: dict[str, dict[ShareUnit, None]] = {member_id: {} for member_id in by_id}
    for unit, owners in new.items():
        for member_id in owners:
            final[member_id][unit] = None
    may = {uuid: set(ids) for uuid, ids in subscribers.items()}
    for unit, owners in current.items():
        for member_id in owners:
            if member_id in may.get(unit[0], ()) and unit not in new:
                final[member_id][unit] = None
    return by_topic(final)


def _by_hash(member_id: str, targets: Sequence[ShareUnit]) -> ShareUnit:
    code = string_hash(member_id)
    # Java's remainder has the sign of the hash code, and the class takes its absolute value.
    magnitude = (1 << 32) - code if code >> 31 else code
    return targets[magnitude % len(targets)]


def _current(group: ServerGroup) -> list[tuple[ShareUnit, list[str]]]:
    """Members of each partition in the previous targets, in the order of the class's map."""
    owners: dict[ShareUnit, list[str]] = {}
    before = 0
    for member_id, topics in held_in_set_order(group).items():
        for uuid, numbers in topics.items():
            for number in numbers:
                before = len(owners)
                owners.setdefault((uuid, number), []).append(member_id)
    listed = list(owners.items())
    order = in_computed_map([unit_code(unit) for unit in owners], _FIRST_TABLE, before)
    return [listed[position] for position in order]


def _deal_with_count(
    units: Sequence[ShareUnit], members: Sequence[str], final: dict[str, dict[ShareUnit, None]], desired: int
) -> None:
    """Deal partitions in turn; a member with more than the desired number leaves the round."""
    left, at = list(members), 0
    for unit in units:
        while True:
            if at >= len(left):
                at = 0
            if not left:
                reason = 'the class throws "Inconsistent number of member IDs" on these previous owners'
                raise LeaderWouldFail(reason)
            owned = final[left[at]]
            if len(owned) <= desired:
                owned[unit] = None
                at += 1
                break
            del left[at]


def by_topic(final: Mapping[str, Iterable[ShareUnit]]) -> Assignment:
    """Members' partitions by topic, in their order."""
    result: dict[str, dict[str, Partitions]] = {}
    for member_id, units in final.items():
        topics: dict[str, list[int]] = {}
        for uuid, number in units:
            topics.setdefault(uuid.text, []).append(number)
        result[member_id] = dict(topics)
    return result
