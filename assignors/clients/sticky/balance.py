"""Different subscriptions: Java's `balance` with the same moves, but without scanning everything at every step.

Before each partition Java checks whether the whole assignment is balanced, by walking all members and partitions. Here
sizes, owners per topic and one witness of imbalance are kept instead: as long as a member that owns a partition of some
topic has so many more than another that could take it, the answer is no; another witness is searched only when this one
no longer holds. Nothing changes between moves, so nothing is checked again.

The state must be sound: every partition exists and has one owner. `BalancingStepByStep` follows Java step by step for
the others. Members may claim partitions that their topic no longer has: Java (from 3.0 on) keeps them, and they hide
from it that others are kept too. And 3.4.1 to 3.5.1 let two members own one partition, so that it may be in two lists,
or twice in one, in Java's result as well as here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

from assignors.clients.racks import RackInfo
from assignors.clients.sticky.claims import Claims
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.task import Movements, Potential, Task
from assignors.context import spend
from assignors.exceptions import CannotTell, LeaderWouldFail

NEVER_ENDS = "the leader would move the same partitions back and forth forever"
"""Reason of `LeaderWouldFail` if Java's loop returns to an earlier state."""


# After this many walks over the partitions each state is compared with an earlier one; some walks are normal.
_ENOUGH_WALKS = 16
_FIXED = "Java throws: the previous owner of a partition takes no part in the reassignment"
_THROWS = "Java throws: a partition's owner takes no part in the reassignment"

# Limit for the partitions visited, some seconds of work: Java visits all of them for every one.
_MOST_VISITS = 5_000_000


def pairwise_differences(sizes: Iterable[int]) -> int:
    """Java's balance score: the sum of differences of all pairs, as a 32-bit number that may have overflowed."""
    ordered = sorted(sizes)
    score = sum(size * (2 * rank - len(ordered) + 1) for rank, size in enumerate(ordered))
    return (score + 0x80000000) % 0x100000000 - 0x80000000


class Balancing:
    """Assigns the unassigned partitions, then moves some until nothing improves: `Balancing(...).result()`.

    The steps are Java's; other libraries, which were modelled on it, override some of them.
    """

    def __init__(self, indexed: IndexedGroup, potential: Potential, task: Task, racks: RackInfo | None) -> None:
        spend(2 * indexed.total)
        self.indexed = indexed
        self.ranks = indexed.ranks
        self.potential = potential
        self.task = task
        self.racks = racks
        self.current = [dict.fromkeys(ids) for ids in task.current]
        self.sizes = [len(ids) for ids in task.current]
        self.topic_of: list[int] = [row for row, count in enumerate(indexed.counts) for _ in range(count)]
        self.topic_of += [row for row, _ in indexed.phantoms]
        self.owner = [-1] * len(self.topic_of)
        for member, ids in enumerate(task.current):
            for partition in ids:
                self.owner[partition] = member
        self.movements = self._no_movements()

    def result(self) -> list[dict[int, None]]:
        """Partitions of each member, in the order in which it received them.

        Raises:
            LeaderWouldFail: The leader throws here, or never ends.
        """
        initializing = not any(self.sizes)
        self._assign()
        shared = self.potential.shared
        topic_of = self.topic_of
        partitions = [p for p in self.task.partitions if shared[topic_of[p]]]
        unassigned = [p for p in self.task.unassigned if shared[topic_of[p]]]
        self.fixed = [self._is_fixed(member) for member in range(len(self.sizes))]
        self.moving = [member for member, fixed in enumerate(self.fixed) if not fixed]
        self.owners: list[dict[int, int]] = [{} for _ in self.indexed.topics]
        for row, owner in zip(topic_of, self.owner, strict=True):
            if shared[row] and owner >= 0:
                of_topic = self.owners[row]
                of_topic[owner] = of_topic.get(owner, 0) + 1
        self.witness: tuple[int, int, int] | None = None
        self.search_from = 0
        self.shared_topics = [row for row, is_shared in enumerate(shared) if is_shared]
        before = [self.sizes[member] for member in self.moving]
        kept = [ids.copy() for ids in self.current]
        self.everything = partitions
        if not self.task.revocation:
            self._reassign(unassigned)
        moved = self._reassign(partitions)
        if not initializing and moved and self._score() >= pairwise_differences(before):
            return kept
        return self.current

    def _no_movements(self) -> Movements:
        return Movements(self.indexed, self.topic_of)

    def _assign(self) -> None:
        """Give each unassigned partition to the member with the fewest that may have it."""
        left: Iterable[int] = self.task.unassigned
        if self.racks is not None:
            left = [partition for partition in left if not self._assign_in_rack(partition, self.racks)]
        heap: list[tuple[int, int, int]] = []
        of_class = -1
        for partition in left:
            row = self.topic_of[partition]
            if self.potential.classes[row] != of_class:
                of_class = self.potential.classes[row]
                heap = self._heap(row)
            size, rank, member = heap[0]
            heapreplace(heap, (size + 1, rank, member))
            self._give(partition, member)

    def _assign_in_rack(self, partition: int, racks: RackInfo) -> bool:
        """Give a partition to the member with the fewest among those in its racks and those without a rack."""
        sizes, ranks = self.sizes, self.ranks
        consumers = self.potential.consumers[self.topic_of[partition]]
        spend(len(consumers))
        fit = [(sizes[m], ranks[m], m) for m in consumers if racks.fits(m, partition)]
        if not fit:
            return False
        self._give(partition, min(fit)[2])
        return True

    def _give(self, partition: int, member: int) -> None:
        self.current[member][partition] = None
        self.owner[partition] = member
        self.sizes[member] += 1

    def _heap(self, row: int) -> list[tuple[int, int, int]]:
        spend(len(self.potential.takers[row]))
        sizes, ranks = self.sizes, self.ranks
        heap = [(sizes[m], ranks[m], m) for m in self.potential.takers[row]]
        heapify(heap)
        return heap

    def _is_fixed(self, member: int) -> bool:
        """Whether a member has everything it could have and none of it could go elsewhere."""
        if self.sizes[member] < self.potential.most[member]:
            return False
        return not any(self.potential.shared[self.topic_of[partition]] for partition in self.current[member])

    def _reassign(self, partitions: Sequence[int]) -> bool:
        """Walk the partitions and move some until a walk moves nothing; returns whether anything moved."""
        performed = False
        balanced = self._is_balanced() if partitions else True
        previous, sizes, owner = self.task.previous, self.sizes, self.owner
        walks, compared_from = 0, _ENOUGH_WALKS
        state: object = None
        while True:
            walks += 1
            spend(len(partitions))
            if walks >= _ENOUGH_WALKS:
                spend(self.indexed.total // 8 + len(self.movements.pair_of))
                # Brent's cycle detection: compare with one saved state, which is replaced at every power of two.
                now = owner.copy(), self.movements.state()
                if now == state:
                    raise LeaderWouldFail(NEVER_ENDS)
                if walks == compared_from:
                    state, compared_from = now, 2 * walks
            modified = False
            of_class, heap = -1, []
            for partition in partitions:
                if balanced:
                    break
                size = sizes[owner[partition]]
                target = previous.get(partition) if previous else None
                if target is None or size <= self._size_of_previous(target, size) + 1:
                    row = self.topic_of[partition]
                    if self.potential.classes[row] != of_class:
                        of_class = self.potential.classes[row]
                        heap = self._heap(row)
                        takers = self.potential.taker_sets[row]
                    while heap[0][0] != sizes[heap[0][2]]:
                        heappop(heap)
                    if size <= heap[0][0] + 1:
                        continue
                    target = heap[0][2]
                for member in self._move(partition, target):
                    if of_class >= 0 and member in takers:
                        heappush(heap, (sizes[member], self.ranks[member], member))
                performed = modified = True
                balanced = self._is_balanced()
            if not modified:
                return performed

    def _move(self, partition: int, target: int) -> Sequence[int]:
        """Move a partition, or the one that must move in its place, to a member; returns the members that changed."""
        moved = self.movements.actual(partition, self.owner[partition], target)
        return self._transfer(moved, target)

    def _transfer(self, moved: int, target: int) -> tuple[int, int]:
        source = self.owner[moved]
        self.movements.record(moved, source, target)
        del self.current[source][moved]
        self.current[target][moved] = None
        self.owner[moved] = target
        self.sizes[source] -= 1
        self.sizes[target] += 1
        owners = self.owners[self.topic_of[moved]]
        owners[source] -= 1
        if not owners[source]:
            del owners[source]
        owners[target] = owners.get(target, 0) + 1
        return source, target

    def _score(self) -> int:
        return pairwise_differences(self.sizes[member] for member in self.moving)

    def _size_of_previous(self, member: int, _size: int) -> int:
        """Number of partitions of a partition's previous owner; `_size` is that of its present owner."""
        if self.fixed[member]:
            raise LeaderWouldFail(_FIXED)
        return self.sizes[member]

    def _is_balanced(self) -> bool:
        """Java's `isBalanced`."""
        sizes, most, gap = self.sizes, self.potential.most, self.potential.gap
        witnessed = False
        if self.witness is not None:
            row, owner, taker = self.witness
            witnessed = sizes[taker] != most[taker] and owner in self.owners[row] and sizes[owner] > sizes[taker] + gap
            if witnessed and gap:
                return False
        spend(1 + len(self.moving) // 8)
        moving = [sizes[member] for member in self.moving]
        if max(moving) - min(moving) <= 1:
            return True
        if witnessed:
            return False
        rows = self.shared_topics
        for step in range(len(rows)):
            at = (self.search_from + step) % len(rows)
            row = rows[at]
            spend((len(self.owners[row]) + len(self.potential.takers[row])) // 8)
            largest = max(self.owners[row], key=sizes.__getitem__)
            least = min(
                (m for m in self.potential.takers[row] if sizes[m] != most[m]), key=sizes.__getitem__, default=largest
            )
            if sizes[largest] > sizes[least] + gap:
                self.search_from = at
                self.witness = row, largest, least
                return False
        self.witness = None
        return True


class BalancingStepByStep(Balancing):
    """The same algorithm, in which a partition may be in several lists.

    Raises:
        LeaderWouldFail: Java throws NullPointerException here.
        CannotTell: The group is too large for this algorithm.
    """

    current: list[Any]  # lists: a member may have a partition twice

    def __init__(
        self, indexed: IndexedGroup, potential: Potential, task: Task, racks: RackInfo | None, claims: Claims
    ) -> None:
        super().__init__(indexed, potential, task, racks)
        self.current = [list(ids) for ids in task.current]
        # Java takes the later of two claimants for the owner, even if that one keeps nothing.
        for member, ids in enumerate(claims.owned):
            for partition in ids.tolist():
                self.owner[partition] = member
        self.visits = 0

    def _give(self, partition: int, member: int) -> None:
        self.current[member].append(partition)
        self.owner[partition] = member
        self.sizes[member] += 1

    def _in_order(self) -> list[int]:
        return sorted(self.moving, key=lambda member: (self.sizes[member], self.ranks[member]))

    def _size(self, member: int) -> int:
        if self.fixed[member]:
            raise LeaderWouldFail(_THROWS)
        return self.sizes[member]

    def _reassign(self, partitions: Sequence[int]) -> bool:
        performed = False
        modified = True
        while modified:
            modified = False
            for partition in partitions:
                if self._is_balanced():
                    break
                target = self._target(partition)
                if target is not None:
                    self._move(partition, target)
                    performed = modified = True
        return performed

    def _target(self, partition: int) -> int | None:
        owner, earlier = self.owner[partition], self.task.previous.get(partition)
        if earlier is not None and self._size(owner) > self._size(earlier) + 1:
            return earlier
        row = self.topic_of[partition]
        spend(len(self.potential.consumers[row]))
        if any(self._size(owner) > self._size(other) + 1 for other in self.potential.consumers[row]):
            takers = self.potential.taker_sets[row]
            return next(member for member in self._in_order() if member in takers)
        return None

    def _transfer(self, moved: int, target: int) -> tuple[int, int]:
        source = self.owner[moved]
        self._size(source)
        self.movements.record(moved, source, target)
        spend(len(self.current[source]) // 8)
        if moved in self.current[source]:
            self.current[source].remove(moved)
            self.sizes[source] -= 1
        self._give(moved, target)
        return source, target

    def _is_balanced(self) -> bool:
        spend(len(self.sizes))
        order = self._in_order()
        if not order:
            raise LeaderWouldFail(_THROWS)
        if self.sizes[order[0]] >= self.sizes[order[-1]] - 1:
            return True
        owner = {partition: member for member in self.moving for partition in self.current[member]}
        self._visit(len(owner))
        for member in order:
            size = self.sizes[member]
            if size == self.potential.most[member]:
                continue
            mine = set(self.current[member])
            for row in self.potential.topics[member]:
                self._visit(self.indexed.counts[row])
                for partition in range(self.indexed.base[row], self.indexed.base[row + 1]):
                    if partition in mine:
                        continue
                    other = owner.get(partition)
                    if other is None:
                        raise LeaderWouldFail(_THROWS)
                    if size + self.potential.gap < self.sizes[other]:
                        return False
        return True

    def _visit(self, partitions: int) -> None:
        spend(partitions)
        self.visits += partitions
        if self.visits > _MOST_VISITS:
            reason = "members claim partitions that do not exist or that another owns too, and the group is large"
            raise CannotTell(reason)
