"""Java's `balance` step by step, for states that `balance.py` refuses: partitions with two owners or nonexistent.

Members may claim partitions that their topic no longer has. Java (from 3.0 on) keeps them, and they hide from it that
others are kept too; and 3.4.1 to 3.5.1 let two members own one partition. A partition can then end up with two members,
or twice in a member's list, in Java's result as well as here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assignors.clients.sticky.balance import Balancing, Task
from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.clients.sticky.potential import Potential
from assignors.clients.sticky.prior_owners import Claims
from assignors.clients.sticky.racks import RackInfo
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.work import spend

_THROWS = "Java throws: a partition's owner takes no part in the reassignment"

# Limit for the partitions visited, some seconds of work: Java visits all of them for every one.
_MOST_VISITS = 5_000_000


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

    def _give(self, partition: int, member: int, why: str) -> None:
        del why
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
        self._give(moved, target, "balance")
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
