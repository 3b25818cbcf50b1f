"""An assignment as a value: the partitions of each topic per member, and functions that compare and count.

Plain dicts, so that every part of Evenkeel can build one. Partitions are any collection of ints with a length: a
`range` where a strategy gives regular blocks (a million partitions then cost as much as ten), a tuple as decoded from a
record. Their order does not matter when two assignments are compared. A member that has the same partitions of many
topics has them as `Alike`: a million entries are then two thousand, and the members that nobody looks at cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass

PartitionId = tuple[str, int]
"""A partition: its topic, and its number."""

Partitions = Collection[int]
"""Partition numbers of one topic: a range, a tuple, a list or an integer array's `tolist()`."""

Assignment = Mapping[str, Mapping[str, Partitions]]
"""Partitions by topic by member id, read only. A member without partitions has {} or is missing: both mean the same."""

_NOTHING: dict[str, Partitions] = {}


class Alike(Mapping[str, Partitions]):
    """The same partitions of each of some topics."""

    __slots__ = ("_partitions", "_topics")

    def __init__(self, topics: Mapping[str, object], partitions: Partitions) -> None:
        """Take the topics as the keys of a mapping, in order, which several members may share."""
        self._topics = topics
        self._partitions = partitions

    def __getitem__(self, topic: str) -> Partitions:
        self._topics[topic]
        return self._partitions

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)

    def items(self) -> ItemsView[str, Partitions]:
        """The same as of a dict, which is walked faster."""
        return dict.fromkeys(self._topics, self._partitions).items()

    def values(self) -> ValuesView[Partitions]:
        """See `items`."""
        return dict.fromkeys(self._topics, self._partitions).values()


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
    result: dict[str, dict[str, Partitions]] = {}
    for member_id, topics in members.items():
        owned: dict[str, Partitions] = {}
        for topic, partitions in topics:
            earlier = owned.get(topic)
            owned[topic] = partitions if earlier is None else (*earlier, *partitions)
        result[member_id] = owned
    return result


def from_pairs(members: Mapping[str, Iterable[tuple[str, int]]]) -> Assignment:
    """Build an assignment from (topic, partition) pairs per member."""
    result: dict[str, dict[str, Partitions]] = {}
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
    rest = dict(right.items())
    alike = all(_same_partitions(partitions, rest.pop(topic, ())) for topic, partitions in left.items())
    return alike and not any(map(len, rest.values()))


def _same_partitions(left: Partitions, right: Partitions) -> bool:
    # The lengths are compared too: a partition listed twice is not the same as listed once.
    return len(left) == len(right) and (left == right or sorted(left) == sorted(right))
