"""Different subscriptions before Java 3.0: owners from a map of generations, partition by partition.

Follows `prepopulateCurrentAssignments` and the general algorithm of 2.4.0 to 2.8.2. The first releases (to 2.5.0) used
it for equal subscriptions too, with a different order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assignors.assignment import PartitionId
from assignors.clients.sticky.balance import Balancing, Task
from assignors.clients.sticky.constrained import Dealt
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.potential import Potential, largest_first, partitions_of
from assignors.clients.sticky.user_data import MemberData
from assignors.hash_map import in_hash_map, in_hash_order, partition_hash, string_hash
from assignors.trace import Began, Believed, notes
from assignors.work import spend


@dataclass(slots=True)
class _Owners:
    """Newest and second newest owner of each claimed partition, in the order of Java's maps.

    Attributes:
        newest: Member by (topic, number), existing or not.
        before: Member by (topic, number), for those with two claims of different generations.
    """

    newest: dict[PartitionId, int]
    before: dict[PartitionId, int]


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
    # (Otherwise the order of Java's maps affects only the order of the members' lists, not their contents.)
    owners = _owners(data, in_order=by_size or indexed.listing)
    existing, previous = indexed.existing(owners.newest, owners.before)
    if (log := notes()) is not None:
        log += [Began(indexed), Believed(existing, data, "partition")]
    partitions = _spread(indexed, existing, previous) if by_size and owners.newest else potential.in_order(indexed)
    task = Task.keeping(indexed, potential, existing, previous, partitions)
    result = Balancing(indexed, potential, task, None).result()
    return Dealt([np.fromiter(listed, dtype=np.int64, count=len(listed)) for listed in result], None)


def _owners(data: Sequence[MemberData], *, in_order: bool) -> _Owners:
    by_generation: dict[PartitionId, dict[int, int]] = {}
    for member, said in enumerate(data):
        for topic, numbers in said.partitions:
            spend(6 * len(numbers))
            for number in numbers:
                claims = by_generation.setdefault((topic, number), {})
                if said.generation is None:
                    claims[-1] = member
                else:
                    claims.setdefault(said.generation, member)
    newest, before = {}, {}
    for partition in _in_hash_order(list(by_generation)) if in_order else by_generation:
        claims = by_generation[partition]
        generations = sorted(claims, reverse=True)
        newest[partition] = claims[generations[0]]
        if len(generations) > 1:
            before[partition] = claims[generations[1]]
    if in_order:
        before = {partition: before[partition] for partition in _in_hash_order(list(before))}
    return _Owners(newest, before)


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
