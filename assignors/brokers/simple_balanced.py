"""The assignor of share groups, `simple`, of Kafka 4.2 and later: balanced, and it keeps previous targets.

Follows `SimpleHomogeneousAssignmentBuilder`, which balances the partitions of all topics together, and
`SimpleHeterogeneousAssignmentBuilder`, which balances each topic by itself. A partition has as many members as it takes
for every member to have one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import ceil

from assignors.assignment import Assignment, Partitions
from assignors.brokers.model import ServerGroup, Uuid
from assignors.brokers.simple import ShareUnit, assignable_of, by_topic, held_in_set_order, unit_code
from assignors.context import spend
from assignors.exceptions import LeaderWouldFail
from assignors.hash_map import capacity_for, in_computed_map, in_hash_map

_Held = list[dict[ShareUnit, None]]
"""Partitions of each member; a member is its position in the order of the coordinator's map."""


def balance_shares(group: ServerGroup) -> Assignment:
    """The assignment of 4.2 and later.

    Where subscriptions differ and nobody subscribes to a topic any more, its partitions stay where they were, as in the
    class: it only walks subscribed topics.

    Raises:
        LeaderWouldFail: The class runs out of members that lack partitions, on the same previous targets as that of 4.1
            (`hash_and_keep`).
        CannotTell: We cannot follow the order of a map.
    """
    order = group.in_map_order()
    held = held_in_set_order(group)
    assignable = assignable_of(group)
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
        _balance(units, subscribers, [(uuid, number) for number in assignable[uuid.text]], _partition_code)
        for owned, of in zip(result.values(), units, strict=True):
            if of:
                owned[uuid.text] = [number for _, number in of]
    return result


def _partition_code(unit: ShareUnit) -> int:
    return unit[1] & 0xFFFFFFFF


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
