"""The partitions that each member could have, for different subscriptions."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.work import spend


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
