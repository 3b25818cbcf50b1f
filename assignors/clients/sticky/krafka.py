"""`cooperative-sticky` of krafka: consumer/assignor/sticky.rs and mod.rs of krafka 0.27 and 0.28.

Members keep what they own, free partitions go to the member with the fewest, and then the fullest members give one by
one to the emptiest ones. Members are taken in the order of the JoinGroup response; racks are not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from assignors.assignment import Assignment, PartitionId, from_pairs
from assignors.clients.sticky.prior_owners import claims_by_generation, two_newest
from assignors.clients.sticky.user_data import said_in_subscription
from assignors.model import Group
from assignors.strategy import PartitionRacks
from assignors.work import spend


def cooperative(group: Group, _racks: PartitionRacks | None) -> Assignment:
    """Krafka from 0.27 on."""
    members = group.members
    wanted = [frozenset(member.topics) for member in members]
    topics = sorted(frozenset().union(*wanted))
    partitions = [(topic, number) for topic in topics for number in range(group.partitions_per_topic.get(topic, 0))]
    spend(len(partitions) * (len(members) + 2))
    # The claimant of the highest generation, and of those the first.
    claims = claims_by_generation([said_in_subscription(member) for member in members], overwriting=None)
    owner, _ = two_newest(claims, claims)
    lists: list[set[PartitionId]] = [set() for _ in members]
    free = []
    for partition in partitions:
        place = owner.get(partition)
        if place is not None and partition[0] in wanted[place]:
            lists[place].add(partition)
        else:
            free.append(partition)
    kept = [frozenset(of_member) for of_member in lists]
    for partition in free:
        takers = [place for place, topics_of in enumerate(wanted) if partition[0] in topics_of]
        lists[min(takers, key=lambda place: len(lists[place]))].add(partition)
    while _one_moves(lists, kept, wanted):
        pass
    return from_pairs(
        {
            member.member_id: [partition for partition in sorted(of_member) if owner.get(partition, place) == place]
            for place, (member, of_member) in enumerate(zip(members, lists, strict=True))
        }
    )


def _one_moves(
    lists: Sequence[set[PartitionId]], kept: Sequence[frozenset[PartitionId]], wanted: Sequence[frozenset[str]]
) -> bool:
    """Move one partition to an emptier member, rather one that its owner has just been given; False if none may."""
    spend(len(lists))
    by_size = sorted(range(len(lists)), key=lambda place: len(lists[place]))
    for target in by_size:
        for source in reversed(by_size):
            if len(lists[source]) < len(lists[target]) + 2:
                break
            spend(len(lists[source]))
            possible = [partition for partition in lists[source] if partition[0] in wanted[target]]
            if possible:
                moved = min(possible, key=lambda partition: (partition in kept[source], partition))
                lists[source].remove(moved)
                lists[target].add(moved)
                return True
    return False
