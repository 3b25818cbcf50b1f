"""An assignment as a value: the partitions of each topic per member, and functions that compare and count.

Plain dicts, so that every part of Evenkeel can build one. Partitions are any collection of ints with a length: a
`range` where a strategy gives regular blocks (a million partitions then cost as much as ten), a tuple as decoded from a
record. Their order does not matter when two assignments are compared.
Members of large groups hold them in arrays (`PackedPartitions`), so that not every topic needs a tuple.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import overload

import numpy as np
import numpy.typing as npt

PartitionId = tuple[str, int]
"""A partition: its topic, and its number."""

Partitions = Collection[int]
"""Partition numbers of one topic: a range, a tuple, a list or an integer array's `tolist()`."""

Assignment = dict[str, dict[str, Partitions]]
"""Partitions by topic by member id. A member without partitions has {} or is missing: both mean the same."""

_NOTHING: dict[str, Partitions] = {}

_Pair = tuple[str, tuple[int, ...]]

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Difference:
    """A partition whose owners differ between two assignments; owners are sorted, () means none."""

    topic: str
    partition: int
    expected: tuple[str, ...]
    actual: tuple[str, ...]


def from_topics(members: Mapping[str, Iterable[tuple[str, Partitions]]]) -> Assignment:
    """Build an assignment from decoded records: per member ((topic, (partition, ...)), ...).

    A topic listed twice for one member is joined.
    """
    result: Assignment = {}
    for member_id, topics in members.items():
        owned: dict[str, Partitions] = {}
        for topic, partitions in topics:
            earlier = owned.get(topic)
            owned[topic] = partitions if earlier is None else (*earlier, *partitions)
        result[member_id] = owned
    return result


def from_pairs(members: Mapping[str, Iterable[tuple[str, int]]]) -> Assignment:
    """Build an assignment from (topic, partition) pairs per member."""
    result: Assignment = {}
    for member_id, pairs in members.items():
        owned: dict[str, list[int]] = {}
        for topic, partition in pairs:
            owned.setdefault(topic, []).append(partition)
        result[member_id] = {topic: tuple(partitions) for topic, partitions in owned.items()}
    return result


def to_pairs(assignment: Assignment) -> dict[str, list[tuple[str, int]]]:
    """Convert an assignment to (topic, partition) pairs per member, in the assignment's order."""
    return {
        member_id: [(topic, partition) for topic, partitions in topics.items() for partition in partitions]
        for member_id, topics in assignment.items()
    }


def counts(assignment: Assignment, members: Iterable[str] | None = None) -> dict[str, int]:
    """Number of partitions per member, for `members` (those without any get 0) or for all in the assignment."""
    ids = assignment if members is None else members
    return {member_id: sum(map(len, assignment.get(member_id, _NOTHING).values())) for member_id in ids}


def owners(assignment: Assignment) -> dict[str, dict[int, list[str]]]:
    """Owners of each assigned partition, by topic and partition; several where it is assigned twice."""
    result: dict[str, dict[int, list[str]]] = {}
    for member_id, topics in assignment.items():
        for topic, partitions in topics.items():
            of_topic = result.setdefault(topic, {})
            for partition in partitions:
                of_topic.setdefault(partition, []).append(member_id)
    return result


def same(left: Assignment, right: Assignment) -> bool:
    """Whether every member has the same partitions in both, regardless of order, empty topics and empty members."""
    return all(
        _same_topics(left.get(member_id, _NOTHING), right.get(member_id, _NOTHING)) for member_id in {**left, **right}
    )


def differences(expected: Assignment, actual: Assignment) -> tuple[Difference, ...]:
    """Partitions whose owners differ between the two, sorted by topic and partition."""
    if same(expected, actual):
        return ()
    should, does = owners(expected), owners(actual)
    result = []
    for topic in sorted({**should, **does}):
        should_be, is_now = should.get(topic, {}), does.get(topic, {})
        for partition in sorted({**should_be, **is_now}):
            left, right = should_be.get(partition, []), is_now.get(partition, [])
            if left != right and sorted(left) != sorted(right):
                result.append(Difference(topic, partition, tuple(sorted(left)), tuple(sorted(right))))
    return tuple(result)


def _same_topics(left: Mapping[str, Partitions], right: Mapping[str, Partitions]) -> bool:
    return all(_same_partitions(left.get(topic, ()), right.get(topic, ())) for topic in {**left, **right})


def _same_partitions(left: Partitions, right: Partitions) -> bool:
    # The lengths are compared too: a partition listed twice is not the same as listed once.
    return len(left) == len(right) and (left == right or sorted(left) == sorted(right))


@dataclass(frozen=True, slots=True, eq=False)
class PackedPartitions(Sequence[_Pair]):
    """A sequence of (topic, (partition, ...)), equal to the tuple of the same pairs; created by `pack`.

    Members that own partitions of the same topics may share one tuple of names. The arrays must not be modified.

    Attributes:
        topics: Topics in order; one may occur twice.
        lengths: Number of partitions of each, int64.
        numbers: Partition numbers of all topics, one topic after the other, int64.
    """

    topics: tuple[str, ...]
    lengths: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.topics)

    def __iter__(self) -> Iterator[_Pair]:
        numbers = self.numbers.tolist()
        start = 0
        for topic, length in zip(self.topics, self.lengths.tolist(), strict=True):
            yield topic, tuple(numbers[start : start + length])
            start += length

    @overload
    def __getitem__(self, index: int) -> _Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> _Pair | tuple[_Pair, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedPartitions):
            return (
                self.topics == other.topics
                and np.array_equal(self.lengths, other.lengths)
                and np.array_equal(self.numbers, other.numbers)
            )
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))


def pack(partitions: Mapping[str, Partitions] | Sequence[tuple[str, Partitions]]) -> PackedPartitions:
    """Store partitions by topic in arrays.

    Args:
        partitions: Partitions by topic, as `assign` returns them for a member, or pairs of a topic and its partitions.
            The order is kept.
    """
    if isinstance(partitions, PackedPartitions):
        return partitions
    pairs = partitions.items() if isinstance(partitions, Mapping) else partitions
    if not pairs:
        return PackedPartitions((), _NONE, _NONE)
    topics, lists = zip(*pairs, strict=True)
    each = list(map(len, lists))
    # Members of large groups usually have one partition of each topic; then nothing need be added up.
    alone = each.count(1) == len(each)
    lengths = np.ones(len(each), dtype=np.int64) if alone else np.array(each, dtype=np.int64)
    size = len(each) if alone else sum(each)
    return PackedPartitions(topics, lengths, np.fromiter(chain.from_iterable(lists), dtype=np.int64, count=size))
