"""The assignor of share groups, `simple`, of 4.2 and later: members keep what they had as far as the balance allows.

Follows `org.apache.kafka.coordinator.group.assignor.SimpleHomogeneousAssignmentBuilder`, which balances the partitions
of all topics together, and `SimpleHeterogeneousAssignmentBuilder`, which balances each topic by itself. A partition has
as many members as it takes for every member to have one. 4.0 and 4.1, where share groups were early access and a
preview, dealt otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil

from assignors.assignment import Assignment, Partitions
from assignors.brokers.model import ServerGroup, Uuid
from assignors.context import spend
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import capacity_for, in_computed_map, in_hash_map, in_hash_set

ShareUnit = tuple[Uuid, int]
"""A partition, by its topic's id."""


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


def by_topic(final: Mapping[str, Iterable[ShareUnit]]) -> Assignment:
    """Members' partitions by topic, in their order."""
    result: dict[str, dict[str, Partitions]] = {}
    for member_id, units in final.items():
        topics: dict[str, list[int]] = {}
        for uuid, number in units:
            topics.setdefault(uuid.text, []).append(number)
        result[member_id] = dict(topics)
    return result


_Held = list[dict[ShareUnit, None]]
"""Partitions of each member; a member is its position in the order of the coordinator's map."""


def balance_shares(group: ServerGroup) -> Assignment:
    """The assignment of a share group.

    Where subscriptions differ and nobody subscribes to a topic any more, its partitions stay where they were, as in the
    class: it only walks subscribed topics.

    Raises:
        LeaderWouldFail: The class runs out of members that lack partitions, because it counts previous partitions that
            may not be assigned any more. No broker gets there: of a topic that exists, a group with members only ever
            initializes more.
        CannotTell: We cannot follow the order of a map.
    """
    order = group.in_map_order()
    held = held_in_set_order(group)
    assignable = {group.uuids[topic.topic_id].text: topic.assignable() for topic in group.topics.values()}
    if group.homogeneous:
        wanted = group.subscribed(order[0]) if order else ()
        subscribed = set(wanted)
        units: _Held = [
            {(uuid, number): None for uuid, numbers in topics.items() if uuid in subscribed for number in numbers}
            for topics in held.values()
        ]
        targets = [(uuid, number) for uuid in wanted for number in assignable[uuid.text]]
        _balance(units, range(len(order)), targets, unit_code)
        return by_topic(dict(zip(held, units, strict=True)))
    takers: dict[Uuid, list[int]] = {}
    for position, member in enumerate(order):
        for uuid in group.subscribed(member):
            takers.setdefault(uuid, []).append(position)
    result: dict[str, dict[str, Partitions]] = {
        # Without any topic that exists, the class returns no targets at all.
        member_id: {uuid.text: numbers for uuid, numbers in topics.items() if takers and uuid not in takers}
        for member_id, topics in held.items()
    }
    for uuid, subscribers in takers.items():
        units = [{(uuid, number): None for number in topics.get(uuid, ())} for topics in held.values()]
        # The class keys these by their number alone, which is its own hash code.
        targets = [(uuid, number) for number in assignable[uuid.text]]
        _balance(units, subscribers, targets, lambda unit: unit[1] & 0xFFFFFFFF)
        for owned, of in zip(result.values(), units, strict=True):
            if of:
                owned[uuid.text] = [number for _, number in of]
    return result


def _balance(
    held: _Held, takers: Sequence[int], targets: Collection[ShareUnit], code: Callable[[ShareUnit], int]
) -> None:
    """Take away what is too much, then deal what lacks members; changes `held`.

    Args:
        held: Previous targets, each in the order of its sets.
        takers: Members that may have the partitions, in their order.
        targets: Partitions that can be assigned, in the order of the class.
        code: Hash code of the key that the class has for a partition.
    """
    spend(len(targets) + sum(map(len, held)))
    sharing = -(-len(takers) // len(targets)) if targets else 0
    desired = dict.fromkeys(range(len(held)), 0) | _desired(takers, sharing * len(targets))
    owners: dict[ShareUnit, dict[int, None]] = {}
    before = 0
    for member, units in enumerate(held):
        for unit in units:
            before = len(owners)
            owners.setdefault(unit, {})[member] = None
    shared = {unit: _in_set(of) for unit, of in owners.items() if len(of) > sharing}
    for member, units in enumerate(held):
        if len(units) > desired[member]:
            listed = list(units)
            order = in_hash_map([code(unit) for unit in listed])
            for position in order[: len(listed) - desired[member]]:
                del units[listed[position]]
                del owners[listed[position]][member]
    for unit, members in shared.items():
        left = [member for member in members if member in owners[unit]]
        for member in left[: max(0, len(left) - sharing)]:
            del owners[unit][member]
            del held[member][unit]
    for unit in targets:
        before = len(owners)
        owners.setdefault(unit, {})
    listed = list(owners)
    in_order = in_computed_map([code(unit) for unit in listed], capacity_for(len(targets)), before)
    unfilled = [member for member in takers if len(held[member]) < desired[member]]
    _deal(held, {listed[position]: owners[listed[position]] for position in in_order}, unfilled, desired, sharing)


def _desired(takers: Sequence[int], shares: int) -> dict[int, int]:
    """The number of partitions that each member should have, which differ by at most one."""
    if not takers:
        return {}
    each = shares / len(takers)
    return {taker: ceil(each * (place + 1)) - ceil(each * place) for place, taker in enumerate(takers)}


def _in_set(members: Collection[int]) -> list[int]:
    """Members in the order of a HashSet to which they were added in the given order."""
    listed = list(members)
    return [listed[position] for position in in_hash_map(listed)]


def _deal(
    held: _Held,
    owners: dict[ShareUnit, dict[int, None]],
    unfilled: list[int],
    desired: dict[int, int],
    sharing: int,
) -> None:
    """Give each partition the members it lacks, in turn from those that lack partitions.

    The class does not count what it deals here among a partition's members, so the same one may come up twice.
    """
    at, dealt = 0, False
    for unit, members in owners.items():
        if not unfilled:
            return
        lack, steps = sharing - len(members), 0
        while lack > 0:
            steps += 1
            if at >= len(unfilled):
                if not dealt:
                    break
                if not unfilled:
                    reason = "the class throws NoSuchElementException on these previous owners"
                    raise LeaderWouldFail(reason)
                at, dealt = 0, False
            member = unfilled[at]
            at += 1
            if member in members:
                continue
            held[member][unit] = None
            lack -= 1
            dealt = True
            if len(held[member]) >= desired[member]:
                at -= 1
                del unfilled[at]
        spend(steps)
