"""What `balance.py` starts from and remembers: who keeps what, who could have what, and the moves so far.

`Potential` are the partitions that each member could have, for different subscriptions. `Movements` is Java's
`PartitionMovements`: the moves of each topic's partitions between members in one reassignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

from assignors.clients.racks import RackInfo
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.context import spend
from assignors.hash_map import first_in_set, partition_hash, string_hash


@dataclass(slots=True)
class Task:
    """The input of `balance`.

    Attributes:
        current: Partitions that each member keeps, in order.
        previous: Owners of partitions in an earlier generation.
        partitions: All partitions, in the order in which they are reassigned.
        unassigned: Partitions that nobody keeps, in the same order.
        revocation: Whether a member had to give up a partition that still exists.
        seeded: Whether the order of the partitions depends on the hash seed of the leader's process.
    """

    current: Sequence[Sequence[int]]
    previous: dict[int, int]
    partitions: Sequence[int]
    unassigned: Sequence[int]
    revocation: bool
    seeded: bool = False

    @classmethod
    def keeping(
        cls,
        indexed: IndexedGroup,
        potential: Potential,
        existing: Sequence[Sequence[int]],
        previous: dict[int, int],
        partitions: Sequence[int],
        racks: RackInfo | None = None,
    ) -> Self:
        """Let members keep those of their partitions whose topics they list, and whose racks fit, if these matter.

        Args:
            indexed: The group.
            potential: What each member could have.
            existing: Partitions of each member (`IndexedGroup.existing`).
            previous: As the attribute.
            partitions: As the attribute.
            racks: Racks, if they matter.
        """
        owned = [np.array(ids, dtype=np.int32) for ids in existing]
        kept, revocation = keep(indexed, potential, owned, racks)
        current = [ids.tolist() for ids in kept]
        taken = set(chain.from_iterable(current))
        unassigned = [partition for partition in partitions if partition not in taken]
        return cls(current, previous, partitions, unassigned, revocation)


def keep(
    indexed: IndexedGroup, potential: Potential, owned: Sequence[Ids], racks: RackInfo | None
) -> tuple[list[Ids], bool]:
    """Partitions that members keep of those they owned, and whether any was given up (`assignOwnedPartitions`)."""
    revocation = False
    kept = []
    wanted: dict[int, npt.NDArray[np.bool_]] = {}  # by the identity of a list of topics, which members share
    for member, ids in enumerate(owned):
        if not ids.size:
            kept.append(ids)
            continue
        rows = potential.topics[member]
        if id(rows) not in wanted:
            wanted[id(rows)] = np.zeros(len(indexed.topics), dtype=bool)
            wanted[id(rows)][rows] = True
        stays = wanted[id(rows)][indexed.topics_of(ids)]
        if racks is not None:
            stays &= racks.matches(member, ids)
        all_stay = bool(stays.all())
        revocation |= not all_stay
        kept.append(ids if all_stay else ids[stays])
    return kept, revocation


class Potential:
    """The members that could have each topic, and how much each member could have.

    Attributes:
        consumers: By topic: members that list it, in the leader's order, as often as they list it.
        takers: By topic: the same, once each.
        taker_sets: By topic: the same as sets.
        classes: By topic: a number that topics with the same takers share.
        shared: By topic: whether Java counts at least two consumers, so that its partitions may move.
        topics: By member: existing topics that it lists, as often as it lists them.
        most: By member: the maximum that Java computes for it.
        gap: Allowed difference in partitions between two members: a partition moves for a better balance if the
            difference is larger.
    """

    __slots__ = ("classes", "consumers", "gap", "most", "shared", "taker_sets", "takers", "topics")

    def __init__(self, indexed: IndexedGroup, *, gap: int, counts_topics: bool) -> None:
        """Read the subscriptions.

        Args:
            indexed: The group.
            gap: See the attribute: 1 from 3.5.2 on (KAFKA-15106), 0 before.
            counts_topics: From 3.0 on: a member that lists as many topics as there are could have everything
                (`getMaxAssignmentSize`), even where it lists one twice.
        """
        self.gap = gap
        self.consumers: list[list[int]] = [[] for _ in indexed.topics]
        self.topics: list[list[int]] = []
        self.most: list[int] = []
        known: dict[int, tuple[list[int], int]] = {}
        for member, listed in enumerate(indexed.listed):
            of_listed = known.get(id(listed))
            if of_listed is None:
                rows = [indexed.index[topic] for topic in listed if topic in indexed.index]
                everything = counts_topics and len(rows) == len(indexed.topics)
                most = indexed.total if everything else sum(indexed.counts[row] for row in rows)
                of_listed = known[id(listed)] = rows, most
            rows, most = of_listed
            spend(2 * len(rows))
            for row in rows:
                self.consumers[row].append(member)
            self.topics.append(rows)
            self.most.append(most)
        self.takers = [list(dict.fromkeys(members)) for members in self.consumers]
        self.taker_sets = [frozenset(members) for members in self.takers]
        classes: dict[frozenset[int], int] = {}
        self.classes = [classes.setdefault(members, len(classes)) for members in self.taker_sets]
        self.shared = [len(members) >= 2 for members in self.consumers]

    def in_order(self, indexed: IndexedGroup) -> list[int]:
        """All partitions, those of topics with fewer consumers first, then by topic and number."""
        return partitions_of(indexed, self.topics_in_order())

    def topics_in_order(self) -> list[int]:
        """Topics with fewer consumers first."""
        return sorted(range(len(self.consumers)), key=lambda row: (len(self.consumers[row]), row))


def partitions_of(indexed: IndexedGroup, rows: Sequence[int]) -> list[int]:
    """Partitions of topics, in the order of the topics."""
    return [partition for row in rows for partition in range(indexed.base[row], indexed.base[row + 1])]


def largest_first(indexed: IndexedGroup, queues: Sequence[Sequence[int]]) -> list[int]:
    """Take partitions one by one from the member that has most left, of equal ones the last by member id.

    Args:
        indexed: The group.
        queues: Each member's partitions, in the order in which they are taken.
    """
    heap = [(-len(queue), -indexed.ranks[member], member) for member, queue in enumerate(queues) if queue]
    heapify(heap)
    taken = [0] * len(queues)
    result = []
    while heap:
        left, rank, member = heap[0]
        result.append(queues[member][taken[member]])
        taken[member] += 1
        if left == -1:
            heappop(heap)
        else:
            heapreplace(heap, (left + 1, rank, member))
    return result


class Movements:
    """Moves so far; call `actual` before each move to learn which partition to move."""

    def __init__(self, indexed: IndexedGroup, row_of: Sequence[int]) -> None:
        self.indexed = indexed
        self.row_of = row_of
        self.pair_of: dict[int, tuple[int, int]] = {}
        # By topic and pair: hash codes of the partitions in order of insertion, and their largest number so far.
        self.moved: dict[tuple[int, int, int], tuple[dict[int, int], list[int]]] = {}
        self.hashes: dict[int, int] = {}

    def actual(self, partition: int, owner: int, target: int) -> int:
        """The partition to move instead of `partition`: one of its topic that made the opposite move before, if any."""
        pair = self.pair_of.get(partition)
        source = owner if pair is None else pair[0]
        reverse = self.moved.get((self.row_of[partition], target, source))
        if reverse is None:
            return partition
        spend(len(reverse[0]))
        return first_in_set(reverse[0], reverse[1][0])

    def state(self) -> object:
        """Everything that later answers depend on, for comparison."""
        return self.pair_of.copy(), {key: (tuple(codes), largest[0]) for key, (codes, largest) in self.moved.items()}

    def record(self, partition: int, source: int, target: int) -> None:
        """Record a move; a partition that returns to its first owner is forgotten."""
        row = self.row_of[partition]
        earlier = self.pair_of.pop(partition, None)
        if earlier is not None:
            codes, _ = self.moved[row, *earlier]
            del codes[partition]
            if not codes:
                del self.moved[row, *earlier]
            source = earlier[0]
            if source == target:
                return
        self.pair_of[partition] = source, target
        codes, largest = self.moved.setdefault((row, source, target), ({}, [0]))
        codes[partition] = self._hash(row, partition)
        largest[0] = max(largest[0], len(codes))

    def _hash(self, row: int, partition: int) -> int:
        of_topic = self.hashes.get(row)
        if of_topic is None:
            of_topic = self.hashes[row] = string_hash(self.indexed.topics[row])
        return partition_hash(of_topic, partition - self.indexed.base[row])
