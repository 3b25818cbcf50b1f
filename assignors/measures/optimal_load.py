"""The least load that the most loaded member could have, as bounds.

Partitions cannot be split, so the exact answer is a scheduling problem that is NP-hard already for two equal members.
A lower bound comes from what must lie on one member, on any of them, an upper bound from assignments that were found
(longest first: Graham, "Bounds on multiprocessing timing anomalies", 1969). Where they meet, the answer is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import accumulate

from assignors.model import Group, topics_listed
from assignors.work import spend

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
        TooMuchWork: It takes more steps than a limit allows (`assignors.work`).
    """
    sizes, takers = _classes(group)
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


def _classes(group: Group) -> tuple[list[int], dict[str, _Takers]]:
    """The number of members of each class, and the classes that may get the partitions of each topic."""
    counts = group.partitions_per_topic
    class_of: dict[frozenset[str], int] = {}
    sizes: list[int] = []
    for listed in topics_listed(group.members):
        spend(len(listed))
        existing = frozenset(topic for topic in listed if counts.get(topic))
        index = class_of.setdefault(existing, len(sizes))
        if index == len(sizes):
            sizes.append(0)
        sizes[index] += 1
    takers: dict[str, set[int]] = {}
    for topics, index in class_of.items():
        for topic in topics:
            takers.setdefault(topic, set()).add(index)
    return sizes, {topic: frozenset(of_topic) for topic, of_topic in takers.items()}


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
