"""Java's `PartitionMovements`: the moves of each topic's partitions between members in one reassignment."""

from __future__ import annotations

from collections.abc import Sequence

from assignors.clients.sticky.indexed_group import IndexedGroup
from assignors.hash_map import first_in_set, partition_hash, string_hash
from assignors.work import spend


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
