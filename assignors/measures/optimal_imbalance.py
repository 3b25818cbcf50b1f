"""The least imbalance that a group could have, whose members subscribe to different topics: of partitions, of load.

The smallest possible maximum of partitions is computed as a flow from topics to subscribers. Topics with the same
subscribers, and members with the same subscription, are merged, so that regular groups have small graphs.

The least load that the most loaded member could have is given as bounds. Partitions cannot be split, so the exact
answer is a scheduling problem that is NP-hard already for two equal members. A lower bound comes from what must lie on
one member, on any of them, an upper bound from assignments that were found (longest first: Graham, "Bounds on
multiprocessing timing anomalies", 1969). Where they meet, the answer is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import accumulate

from assignors.context import spend
from assignors.model import Group, topics_listed


def _classes(group: Group) -> tuple[list[int], dict[str, tuple[int, ...]]]:
    """Members with the same existing topics are a class.

    Returns:
        The number of members of each class; and the classes that may get each topic, ascending, by topic in record
        order: the duration of a flow must not depend on the order of a set of strings.
    """
    counts = group.partitions_per_topic
    class_of: dict[frozenset[str], int] = {}
    known: dict[int, int] = {}
    sizes: list[int] = []
    takers: dict[str, list[int]] = {}
    for listed in topics_listed(group.members):
        index = known.get(id(listed))
        if index is None:
            existing = [topic for topic in dict.fromkeys(listed) if counts.get(topic)]
            spend(len(existing))
            index = known[id(listed)] = class_of.setdefault(frozenset(existing), len(sizes))
            if index == len(sizes):
                sizes.append(0)
                for topic in existing:
                    takers.setdefault(topic, []).append(index)
        sizes[index] += 1
    return sizes, {topic: tuple(of_topic) for topic, of_topic in takers.items()}


def smallest_maximum(group: Group) -> int:
    """Number of partitions of the fullest member in the most even assignment of all partitions; exact.

    Start from the mean, rounded up, and let the partitions flow. If some do not fit, all members that they could reach,
    directly or by displacing others, are full: the topics with only these subscribers are too many for them, and their
    mean, rounded up, is the next bound. It grows each time and never exceeds the answer.

    Returns:
        0 when nothing can be assigned.

    Raises:
        TooMuchWork: The flow takes more steps than a limit allows (`assignors.context`).
    """
    sizes, takers = _classes(group)
    supply: dict[tuple[int, ...], int] = {}
    for topic, of_topic in takers.items():
        supply[of_topic] = supply.get(of_topic, 0) + group.partitions_per_topic[topic]
    full: set[int] | None = set().union(*supply)
    most = 0
    while full is not None:
        confined = sum(count for key, count in supply.items() if full.issuperset(key))
        most = -(-confined // max(1, sum(sizes[index] for index in full)))
        full = _full_classes(supply, [size * most for size in sizes])
    return most


def _full_classes(supply: Mapping[tuple[int, ...], int], room: list[int]) -> set[int] | None:
    """Let supply flow into the room of its classes; None if all fits, else the classes that it fills."""
    # Nodes of the flow: classes are 0, 1 and so on, the kinds of supply -1, -2 and so on.
    kinds = list(supply)
    given: list[dict[int, int]] = [{} for _ in room]
    for number, amounts in enumerate(supply.values()):
        source, left = -1 - number, amounts
        while left:
            # Breadth-first search for a class with room, through kinds that can give elsewhere.
            came_from = {source: source}
            queue = [source]
            for node in queue:
                if node >= 0 and room[node]:
                    break
                following = given[node] if node >= 0 else kinds[-1 - node]
                spend(len(following) // 2)
                for other in following:
                    if other not in came_from:
                        came_from[other] = node
                        queue.append(other)
            else:
                return {node for node in came_from if node >= 0}
            path = [node]
            while path[-1] != source:
                path.append(came_from[path[-1]])
            passed_on = list(zip(path[2::2], path[1::2], strict=False))
            amount = min(left, room[node], *(given[index][kind] for index, kind in passed_on))
            room[node] -= amount
            left -= amount
            for index, kind in zip(path[::2], path[1::2], strict=True):
                given[index][kind] = given[index].get(kind, 0) + amount
            for index, kind in passed_on:
                given[index][kind] -= amount
                if not given[index][kind]:
                    del given[index][kind]
    return None


_Takers = frozenset[int]
"""Classes of members with the same subscription, by index, that may get a partition."""


def smallest_load_bounds(group: Group, load: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Bounds of the load of the most loaded member, in the assignment in which it is the least.

    Args:
        group: Members and partition counts. Every partition with a subscriber is assigned to one of them.
        load: Load of each partition by topic, none below 0; a partition without a value has none.

    Returns:
        No assignment stays below the first, and one that was found reaches the second: equal where the answer is exact;
        both 0 if there is nothing to assign.

    Raises:
        TooMuchWork: It takes more steps than a limit allows (`assignors.context`).
    """
    sizes, classes = _classes(group)
    takers = {topic: frozenset(of_topic) for topic, of_topic in classes.items()}
    jobs = sorted(
        (
            (value, takers[topic])
            for topic, count in group.partitions_per_topic.items()
            if topic in takers
            for value in load.get(topic, ())[:count]
            if value > 0
        ),
        # Among equal loads those that fit fewer members come first, so that the others can fill the gaps.
        key=lambda job: (-job[0], sum(sizes[index] for index in job[1]), sorted(job[1])),
    )
    if not jobs:
        return 0, 0
    spend(len(jobs))
    most = min(_longest_first(jobs, sizes), _longest_first(sorted(jobs, key=lambda job: len(job[1])), sizes))
    return min(_least(jobs, sizes), most), most


def _least(jobs: Sequence[tuple[float, _Takers]], sizes: Sequence[int]) -> float:
    """A load that some member must have, whatever the assignment.

    Partitions that only certain members may get stay among these. So they have at least the mean; and of the k * m + 1
    largest partitions on m members, one member has k + 1, at least as large as the smallest of them.
    """
    kinds = dict.fromkeys(takers for _, takers in jobs)
    kinds[frozenset(range(len(sizes)))] = None
    spend(len(kinds) * len(jobs))
    found = 0.0
    for kind in kinds:
        members = sum(sizes[index] for index in kind)
        confined = [value for value, takers in jobs if takers <= kind]
        found = max(found, sum(confined) / members)
        if members > 1:
            sums = list(accumulate(confined, initial=0.0))
            for k in range((len(confined) - 1) // members + 1):
                found = max(found, sums[k * members + 1] - sums[k * members - k])
    return found


def _longest_first(jobs: Sequence[tuple[float, _Takers]], sizes: Sequence[int]) -> float:
    """Load of the most loaded member if each partition in turn goes to the least loaded member that may get it."""
    heaps = [[0.0] * size for size in sizes]
    for heap in heaps:
        heapify(heap)
    for value, takers in jobs:
        spend(len(takers))
        index = min(takers, key=lambda index: (heaps[index][0], index))
        heapreplace(heaps[index], heaps[index][0] + value)
    return max(map(max, heaps))
