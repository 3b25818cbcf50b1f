"""The broker's `uniform` before 4.0 for members that subscribe to different topics.

Follows `UniformHeterogeneousAssignmentBuilder` of 3.8 and 3.9, a port of the clients' sticky algorithm: members keep
their partitions, the rest goes one by one to the least loaded member, then partitions move one by one while this
improves the balance. Its check of movements is inverted: it throws as soon as two partitions of a topic would move in
opposite directions, where the clients' algorithm takes the first move back.
"""

from __future__ import annotations

import heapq
from operator import itemgetter

from assignors.assignment import Assignment, Partitions
from assignors.blocks import places_by_topic
from assignors.brokers.model import ServerGroup, texts_of
from assignors.context import spend
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.hash_map import in_hash_map
from assignors.order import utf16

# Limit for the steps of the balance check, which the class repeats after every move, over all moves: about ten seconds
# here, where the class itself takes minutes.
MOST_CHECKS = 20_000_000


def deal_and_move(group: ServerGroup) -> Assignment:
    """The assignment of 3.8 and 3.9.

    Raises:
        LeaderWouldFail: The class throws on this input, as it does on many.
        CannotTell: We cannot follow the order of a map, or it would take too long.
    """
    dealing = _Dealing(group)
    if not dealing.subscribers:
        return {member_id: {} for member_id in dealing.member_ids}
    dealing.keep_targets()
    dealing.deal_the_rest()
    dealing.balance()
    return dealing.assignment()


class _Dealing:
    """Current owners during the computation; members are numbers in the order of the member map.

    Call in this order: `keep_targets`, `deal_the_rest`, `balance`, `assignment`.
    """

    def __init__(self, group: ServerGroup) -> None:
        self._group = group
        self._members = group.in_map_order()
        self.member_ids = [member.member_id for member in self._members]
        listed = [group.subscribed(member) for member in self._members]
        # Topics with the same subscribers share one list.
        self.subscribers = places_by_topic(listed, texts_of)
        self._wanted = [texts_of(topics) for topics in listed]
        self._counts = group.counts
        in_order = sorted(range(len(self._members)), key=lambda number: utf16(self.member_ids[number]))
        # Members are compared by size, then by id.
        self._rank = {number: rank for rank, number in enumerate(in_order)}
        self._sizes = [0] * len(self._members)
        self._most = [sum(self._counts[topic] for topic in topics) for topics in self._wanted]
        self._has: list[dict[str, set[int]]] = [{} for _ in self._members]
        self._owners: dict[str, list[int | None]] = {topic: [None] * self._counts[topic] for topic in self.subscribers}
        # Members below their maximum, among which the class searches a new owner.
        self._open = {number for number in range(len(self._members)) if self._most[number] > 0}
        self._partitions = self._sorted_partitions()
        self._moved: set[tuple[str, int]] = set()
        self._moves: set[tuple[str, int, int]] = set()
        self._contested = False
        self._checks_left = MOST_CHECKS

    def keep_targets(self) -> None:
        """Let members keep their partitions of topics they still subscribe to, even those that another one had too."""
        for number, member in enumerate(self._members):
            wanted = frozenset(self._wanted[number])
            for topic_id, partitions in member.target:
                topic = self._group.uuids[topic_id].text
                if topic not in wanted:
                    continue
                for partition in set(partitions):
                    if 0 <= partition < self._counts[topic]:
                        self._contested |= self._owners[topic][partition] is not None
                    self._give(topic, partition, number)

    def deal_the_rest(self) -> None:
        """Give each unowned partition to its least loaded subscriber that may have more."""
        heaps: dict[int, list[tuple[int, int, int]]] = {}
        spend(2 * len(self._partitions))
        for topic, partition in self._partitions:
            if self._owners[topic][partition] is not None:
                continue
            subscribers = self.subscribers[topic]
            heap = heaps.get(id(subscribers))
            if heap is None:
                spend(len(subscribers))
                heap = heaps[id(subscribers)] = [
                    (self._sizes[number], self._rank[number], number) for number in subscribers
                ]
                heapq.heapify(heap)
            number = self._least(heap)
            if number is None:
                reason = 'the broker\'s uniform before 4.0 throws "Some partitions were left unassigned" here'
                raise LeaderWouldFail(reason)
            self._give(topic, partition, number)

    def balance(self) -> None:
        """Move partitions of topics with several subscribers until a pass over all of them moves none."""
        movable = [pair for pair in self._partitions if len(self.subscribers[pair[0]]) > 1]
        modified = True
        while modified:
            modified = moved = False
            # Moved partitions are not considered again.
            movable = [pair for pair in movable if pair not in self._moved]
            smallest: dict[int, int] = {}
            spend(len(movable))
            for topic, partition in movable:
                if moved:
                    if self._is_balanced():
                        return
                    smallest.clear()
                moved = False
                subscribers = self.subscribers[topic]
                if id(subscribers) not in smallest:
                    smallest[id(subscribers)] = min(self._sizes[number] for number in subscribers)
                    self._count_checks(len(subscribers))
                owner = self._owners[topic][partition]
                if owner is not None and self._sizes[owner] > smallest[id(subscribers)] + 1:
                    self._move(topic, partition, owner)
                    modified = moved = True

    def assignment(self) -> Assignment:
        """The resulting assignment."""
        result: dict[str, dict[str, Partitions]] = {}
        for member_id, has in zip(self.member_ids, self._has, strict=True):
            result[member_id] = {topic: sorted(partitions) for topic, partitions in has.items() if partitions}
        return result

    def _sorted_partitions(self) -> list[tuple[str, int]]:
        """All partitions: most partitions per subscriber first, then fewest subscribers, then lowest number.

        Partitions that are equal in all three (of different topics) stay in the order of a HashSet of
        `TopicIdPartition`, filled topic by topic in the order of a HashSet of ids.
        """
        codes = {topic: self._group.uuids[topic].code for topic in self.subscribers}
        listed = list(codes)
        topics = [listed[position] for position in in_hash_map(list(codes.values()))]
        takers = {topic: len(self.subscribers[topic]) for topic in topics}
        key = {topic: (-self._counts[topic] / takers[topic], takers[topic]) for topic in topics}
        tie = len(set(key.values())) < len(topics)
        if not tie:
            topics.sort(key=key.__getitem__)
        partitions = [(topic, number) for topic in topics for number in range(self._counts[topic])]
        if tie:
            # A HashSet is a HashMap, and this one grows from its smallest table.
            in_set = in_hash_map([31 * (31 + codes[topic]) + number & 0xFFFFFFFF for topic, number in partitions])
            partitions = [partitions[position] for position in in_set]
            partitions.sort(key=itemgetter(1))
            partitions.sort(key=lambda partition: key[partition[0]])
        return partitions

    def _least(self, heap: list[tuple[int, int, int]]) -> int | None:
        """The least loaded member of a heap that may have more; sizes in the heap may be outdated, but only too low."""
        while heap:
            size, rank, number = heap[0]
            if self._sizes[number] >= self._most[number]:
                heapq.heappop(heap)
            elif size != self._sizes[number]:
                heapq.heapreplace(heap, (self._sizes[number], rank, number))
            else:
                return number
        return None

    def _give(self, topic: str, partition: int, number: int) -> None:
        self._has[number].setdefault(topic, set()).add(partition)
        if 0 <= partition < self._counts[topic]:
            self._owners[topic][partition] = number
        self._resize(number, 1)

    def _remove(self, topic: str, partition: int, number: int) -> None:
        has = self._has[number].get(topic)
        if has is not None:
            has.discard(partition)
        self._resize(number, -1)

    def _resize(self, number: int, by: int) -> None:
        self._sizes[number] = max(0, self._sizes[number] + by)
        if self._sizes[number] < self._most[number]:
            self._open.add(number)
        else:
            self._open.discard(number)

    def _move(self, topic: str, partition: int, owner: int) -> None:
        spend(len(self.subscribers[topic]))
        takers = self._open.intersection(self.subscribers[topic])
        if not takers:
            reason = 'the broker\'s uniform before 4.0 throws "No suitable new owner was found" here'
            raise LeaderWouldFail(reason)
        taker = min(takers, key=lambda number: (self._sizes[number], self._rank[number]))
        if (topic, taker, owner) in self._moves:
            reason = 'the broker\'s uniform before 4.0 throws "Mismatch in partition movement record" here'
            raise LeaderWouldFail(reason)
        self._moved.add((topic, partition))
        self._moves.add((topic, owner, taker))
        self._remove(topic, partition, owner)
        self._give(topic, partition, taker)

    def _is_balanced(self) -> bool:
        if not self._open:
            reason = "the broker's uniform before 4.0 throws NoSuchElementException when no member may get more"
            raise LeaderWouldFail(reason)
        spend(len(self._open) // 4)
        sizes = [self._sizes[number] for number in self._open]
        if min(sizes) >= max(sizes) - 1:
            return True
        return not (self._could_take_contested() if self._contested else self._could_take())

    def _could_take(self) -> bool:
        """Whether a member below its maximum could take a partition from one that has at least two more."""
        largest = {}
        for topic, owners in self._owners.items():
            of_topic = {owner for owner in owners if owner is not None}
            self._count_checks(len(owners))
            largest[topic] = max((self._sizes[owner] for owner in of_topic), default=0)
        for number in self._open:
            spend(len(self._wanted[number]))
            if any(largest[topic] > self._sizes[number] + 1 for topic in self._wanted[number]):
                return True
        return False

    def _could_take_contested(self) -> bool:
        """The same if several members may have a partition: a member cannot take one that it has."""
        for number in self._open:
            for topic in self._wanted[number]:
                self._count_checks(self._counts[topic])
                has = self._has[number].get(topic, ())
                for partition, owner in enumerate(self._owners[topic]):
                    if partition not in has and owner is not None and self._sizes[owner] > self._sizes[number] + 1:
                        return True
        return False

    def _count_checks(self, count: int) -> None:
        spend(count // 4)
        self._checks_left -= count
        if self._checks_left < 0:
            reason = "too many members and partitions for the broker's uniform before 4.0: not recomputed"
            raise CannotTell(reason)
