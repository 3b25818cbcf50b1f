"""Different subscriptions, in Java.

`general` follows `generalAssign` and `GeneralAssignmentBuilder` of 3.0 and later. `general_by_generations` follows
`prepopulateCurrentAssignments` and the general algorithm of 2.4.0 to 2.8.2: owners from a map of generations, partition
by partition. The first releases (to 2.5.0) used it for equal subscriptions too, with a different order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assignors.assignment import PartitionId
from assignors.clients.racks import RackInfo
from assignors.clients.sticky.balance import Balancing, BalancingStepByStep
from assignors.clients.sticky.claims import Claims, MemberData, claims_by_generation, two_newest
from assignors.clients.sticky.constrained import Dealt, unassigned
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.task import Potential, Task, keep, largest_first, partitions_of
from assignors.context import spend
from assignors.hash_map import in_hash_map, in_hash_order, partition_hash, string_hash


def general(
    indexed: IndexedGroup, claims: Claims, previous: dict[int, int], racks: RackInfo | None, *, gap: int
) -> Dealt:
    """Assign a group's partitions.

    Args:
        indexed: The group.
        claims: Previous owners.
        previous: Owners of partitions in an earlier generation.
        racks: Racks, if they matter.
        gap: Allowed difference between members in a balanced assignment (`Potential.gap`).

    Raises:
        LeaderWouldFail: Java throws here.
        CannotTell: Members claim partitions that do not exist, or two members own one, in a group that is too large to
            follow Java step by step.
    """
    potential = Potential(indexed, gap=gap, counts_topics=True)
    spend(len(indexed.members) * (10 + len(indexed.topics) // 64))
    kept, revocation = keep(indexed, potential, claims.owned, racks)
    everything = np.concatenate(kept)
    # If two own a partition, Java continues with the later one as its owner, even if that one kept nothing.
    claimed = np.concatenate(claims.owned)
    sound = int(everything.max(initial=-1)) < indexed.total and np.bincount(claimed, minlength=1).max() <= 1
    partitions = potential.in_order(indexed)
    listed = np.array(partitions, dtype=np.int32)
    free = unassigned(indexed, kept, np.argsort(potential.topics_in_order()))
    task = Task([ids.tolist() for ids in kept], previous, partitions, listed[free[listed]].tolist(), revocation)
    balancing = (
        Balancing(indexed, potential, task, racks)
        if sound
        else BalancingStepByStep(indexed, potential, task, racks, claims)
    )
    return Dealt([np.fromiter(ids, dtype=np.int32, count=len(ids)) for ids in balancing.result()], None)


def general_by_generations(indexed: IndexedGroup, data: Sequence[MemberData], *, spreads_identical: bool) -> Dealt:
    """Assign a group's partitions.

    Args:
        indexed: The group.
        data: Each member's claims.
        spreads_identical: To 2.5.0: if all members could have the same partitions and there was an assignment before,
            partitions are reassigned in an order by the size of their owners instead of by topic.

    Raises:
        LeaderWouldFail: Java throws here.
        CannotTell: Hashes collide so often that we do not follow the order of a map.
    """
    potential = Potential(indexed, gap=0, counts_topics=False)
    by_size = spreads_identical and _identical(potential)
    claims = claims_by_generation(data, overwriting=None)
    # Otherwise the order of Java's maps affects only the order of the members' lists, not their contents.
    newest, before = two_newest(claims, _in_hash_order(list(claims)) if by_size else claims)
    if by_size:
        before = {partition: before[partition] for partition in _in_hash_order(list(before))}
    existing, previous = indexed.existing(newest, before)
    partitions = _spread(indexed, existing, previous) if by_size and newest else potential.in_order(indexed)
    task = Task.keeping(indexed, potential, existing, previous, partitions)
    result = Balancing(indexed, potential, task, None).result()
    return Dealt([np.fromiter(listed, dtype=np.int32, count=len(listed)) for listed in result], None)


def _identical(potential: Potential) -> bool:
    """Whether all members could have the same existing partitions."""
    return len({frozenset(rows) for rows in potential.topics}) <= 1


def _spread(indexed: IndexedGroup, existing: Sequence[Sequence[int]], previous: dict[int, int]) -> list[int]:
    """Order for equal subscriptions: from the largest member first, and partitions that had another owner before first.

    Unowned partitions come last, in the order of a HashMap of all partitions.
    """
    spend(8 * indexed.total)
    owner = {partition: member for member, ids in enumerate(existing) for partition in ids}
    queues: list[list[int]] = [[] for _ in existing]
    for partition in previous:
        queues[owner[partition]].append(partition)
    for queue, ids in zip(queues, existing, strict=True):
        queue += [partition for partition in ids if partition not in previous]
    result = largest_first(indexed, queues)
    listed = set(result)
    # Topics are inserted into a HashMap from a HashSet, which is filled member by member.
    subscribed = in_hash_order(topic for member in indexed.members for topic in member.topics)
    rows = [indexed.index[topic] for topic in in_hash_order(t for t in subscribed if t in indexed.index)]
    everything = [
        (indexed.topics[row], partition - indexed.base[row])
        for row in rows
        for partition in partitions_of(indexed, [row])
    ]
    for topic, number in _in_hash_order(everything):
        partition = indexed.base[indexed.index[topic]] + number
        if partition not in listed:
            result.append(partition)
    return result


def _in_hash_order(partitions: list[PartitionId]) -> list[PartitionId]:
    """Order (topic, number) as a HashMap of TopicPartition iterates them after insertion in this order.

    Raises:
        CannotTell: So many share a bucket that the map keeps them as a tree.
    """
    hashes = {topic: string_hash(topic) for topic in {topic for topic, _ in partitions}}
    codes = [partition_hash(hashes[topic], number) for topic, number in partitions]
    return [partitions[at] for at in in_hash_map(codes)]
