"""Java's `balance` step by step, for states that `balance.py` refuses: partitions with two owners or nonexistent.

Members may claim partitions that their topic no longer has. Java (from 3.0 on) keeps them, and they hide from it that
others are kept too; and 3.4.1 to 3.5.1 let two members own one partition. A partition can then end up with two members,
in Java's result as well as here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assignors.clients.sticky.balance import pairwise_differences
from assignors.clients.sticky.indexed_group import Ids, IndexedGroup
from assignors.clients.sticky.movements import Movements
from assignors.clients.sticky.potential import Potential
from assignors.clients.sticky.prior_owners import Claims
from assignors.clients.sticky.racks import RackInfo
from assignors.exceptions import CannotTell, LeaderWouldFail
from assignors.work import spend

_THROWS = "Java throws: a partition's owner takes no part in the reassignment"

# Limit for the partitions visited, some seconds of work: Java visits all of them for every one.
_MOST_LOOKS = 5_000_000


def balance_unsound(
    indexed: IndexedGroup,
    potential: Potential,
    claims: Claims,
    kept: Sequence[Ids],
    previous: dict[int, int],
    racks: RackInfo | None,
    *,
    revocation: bool,
) -> list[Ids]:
    """Assign the partitions that Java takes as unassigned, then move some until it sees no improvement.

    Args:
        indexed: The group.
        potential: The members that could have each topic.
        claims: Previous owners, subscribed or not.
        kept: What each member keeps.
        previous: Owners of partitions in an earlier generation.
        racks: Racks, if they matter.
        revocation: Whether a member had to give up a partition of a topic that exists.

    Raises:
        LeaderWouldFail: Java throws NullPointerException here.
        CannotTell: The group is too large for this algorithm.
    """
    spend(4 * indexed.total)
    owner = {partition: member for member, ids in enumerate(claims.owned) for partition in ids.tolist()}
    steps = _Steps(indexed, potential, [ids.tolist() for ids in kept], owner, previous)
    return [np.array(ids, dtype=np.int64) for ids in steps.run(racks, revocation=revocation)]


class _Steps:
    def __init__(
        self,
        indexed: IndexedGroup,
        potential: Potential,
        current: list[list[int]],
        owner: dict[int, int],
        previous: dict[int, int],
    ) -> None:
        self.indexed = indexed
        self.potential = potential
        self.current = current
        self.owner = owner
        self.previous = previous
        self.row_of = [row for row, count in enumerate(indexed.counts) for _ in range(count)]
        self.row_of += [row for row, _ in indexed.phantoms]
        self.moving = dict.fromkeys(range(len(current)))  # without the fixed members later on
        self.movements = Movements(indexed, self.row_of)
        self.looks = 0

    def run(self, racks: RackInfo | None, *, revocation: bool) -> list[list[int]]:
        partitions = self.potential.in_order(self.indexed)
        unassigned = self._unassigned(partitions)
        initializing = not any(self.current)
        left = unassigned
        if racks is not None:
            left = [p for p in left if not self._assign(p, racks)]
        for partition in left:
            self._assign(partition, None)
        shared = self.potential.shared
        partitions = [p for p in partitions if shared[self.row_of[p]]]
        unassigned = [p for p in unassigned if shared[self.row_of[p]]]
        self.moving = dict.fromkeys(m for m in self.moving if not self._is_fixed(m))
        before = {m: list(self.current[m]) for m in self.moving}
        if not revocation:
            self._reassign(unassigned)
        moved = self._reassign(partitions)
        if not initializing and moved:
            now = pairwise_differences(len(self.current[m]) for m in self.moving)
            if now >= pairwise_differences(map(len, before.values())):
                for member, ids in before.items():
                    self.current[member] = ids
        return self.current

    def _unassigned(self, partitions: list[int]) -> list[int]:
        """All partitions minus the kept ones, in a parallel walk: from the first missed kept one on none is matched."""
        position_of = {row: at for at, row in enumerate(dict.fromkeys(self.row_of[p] for p in partitions))}
        kept = sorted(
            (position_of[self.row_of[p]], self.indexed.topic_and_number(p)[1], p) for ids in self.current for p in ids
        )
        met = set()
        for (*_, partition), (*_, before) in zip(kept, [(0, 0, -1), *kept], strict=False):
            if partition >= self.indexed.total or partition == before:
                break
            met.add(partition)
        return [partition for partition in partitions if partition not in met]

    def _order(self) -> list[int]:
        return sorted(self.moving, key=lambda m: (len(self.current[m]), self.indexed.ranks[m]))

    def _assign(self, partition: int, racks: RackInfo | None) -> bool:
        takers = self.potential.taker_sets[self.row_of[partition]]
        self._look(len(self.moving))
        for member in self._order():
            if member in takers and (racks is None or racks.fits(member, partition)):
                self.current[member].append(partition)
                self.owner[partition] = member
                return True
        return False

    def _is_fixed(self, member: int) -> bool:
        mine = self.current[member]
        spend(1 + len(mine))
        return len(mine) >= self.potential.most[member] and not any(self.potential.shared[self.row_of[p]] for p in mine)

    def _size(self, member: int) -> int:
        if member not in self.moving:
            raise LeaderWouldFail(_THROWS)
        return len(self.current[member])

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
        owner = self.owner[partition]
        earlier = self.previous.get(partition)
        if earlier is not None and self._size(owner) > self._size(earlier) + 1:
            return earlier
        row = self.row_of[partition]
        spend(len(self.potential.consumers[row]))
        if any(self._size(owner) > self._size(other) + 1 for other in self.potential.consumers[row]):
            takers = self.potential.taker_sets[row]
            return next(member for member in self._order() if member in takers)
        return None

    def _move(self, partition: int, target: int) -> None:
        moved = self.movements.actual(partition, self.owner[partition], target)
        source = self.owner[moved]
        self._size(source)
        self.movements.record(moved, source, target)
        spend(len(self.current[source]) // 8)
        if moved in self.current[source]:
            self.current[source].remove(moved)
        self.current[target].append(moved)
        self.owner[moved] = target

    def _is_balanced(self) -> bool:
        spend(len(self.moving))
        order = self._order()
        if not order:
            raise LeaderWouldFail(_THROWS)
        if len(self.current[order[0]]) >= len(self.current[order[-1]]) - 1:
            return True
        owner = {partition: member for member in self.moving for partition in self.current[member]}
        self._look(len(owner))
        for member in order:
            size = len(self.current[member])
            if size == self.potential.most[member]:
                continue
            mine = set(self.current[member])
            for row in self.potential.topics[member]:
                self._look(self.indexed.counts[row])
                for partition in range(self.indexed.base[row], self.indexed.base[row + 1]):
                    if partition in mine:
                        continue
                    other = owner.get(partition)
                    if other is None:
                        raise LeaderWouldFail(_THROWS)
                    if size + self.potential.gap < len(self.current[other]):
                        return False
        return True

    def _look(self, partitions: int) -> None:
        spend(partitions)
        self.looks += partitions
        if self.looks > _MOST_LOOKS:
            reason = "members claim partitions that do not exist or that another owns too, and the group is large"
            raise CannotTell(reason)
