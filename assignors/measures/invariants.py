"""Invariants of every assignment, whatever computed it: checks that need no recomputation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from assignors.assignment import Assignment, Partitions

DOUBLY_ASSIGNED = "doubly_assigned"
NOT_SUBSCRIBED = "not_subscribed"
BEYOND_COUNT = "beyond_count"


@dataclass(frozen=True, slots=True)
class Violation:
    """A partition that a member must not own.

    Attributes:
        kind: `DOUBLY_ASSIGNED` (an earlier member of the assignment, or the same list, has it already),
            `NOT_SUBSCRIBED` (the member does not subscribe to the topic) or `BEYOND_COUNT` (the partition does not
            exist).
        topic: Topic.
        partition: Partition.
        member: The member that wrongly has it; with `DOUBLY_ASSIGNED` each one after the first.
    """

    kind: str
    topic: str
    partition: int
    member: str


def violations(
    assignment: Assignment,
    subscribed: Mapping[str, Collection[str]],
    partitions_per_topic: Mapping[str, int],
) -> tuple[Violation, ...]:
    """Find violations that no strategy may cause.

    Args:
        assignment: The actual assignment.
        subscribed: Topics by member id. A member that is missing here was not decoded, so its subscription is unknown
            and not judged.
        partitions_per_topic: Partition counts. A missing topic has an unknown count and is not judged for
            `BEYOND_COUNT`; 0 means that the topic does not exist.

    Returns:
        Violations in the order of the assignment; () for a sound one. One partition can have several.
    """
    found: list[Violation] = []
    taken: dict[str, set[int]] = {}
    for member_id, topics in assignment.items():
        wanted = subscribed.get(member_id)
        for topic, partitions in topics.items():
            if not partitions:
                continue
            if wanted is not None and topic not in wanted:
                found.extend(Violation(NOT_SUBSCRIBED, topic, partition, member_id) for partition in partitions)
            count = partitions_per_topic.get(topic)
            if count is not None and (max(partitions) >= count or min(partitions) < 0):
                found.extend(
                    Violation(BEYOND_COUNT, topic, partition, member_id)
                    for partition in partitions
                    if not 0 <= partition < count
                )
            of_topic = taken.setdefault(topic, set())
            of_member = set(partitions)
            if len(of_member) < len(partitions) or not of_topic.isdisjoint(of_member):
                found.extend(_doubly(of_topic, topic, member_id, partitions))
            of_topic |= of_member
    return tuple(found)


def _doubly(taken: Collection[int], topic: str, member_id: str, partitions: Partitions) -> Iterable[Violation]:
    """Partitions of one member's list that an earlier member, or the same list, has already."""
    of_list: set[int] = set()
    for partition in partitions:
        if partition in taken or partition in of_list:
            yield Violation(DOUBLY_ASSIGNED, topic, partition, member_id)
        of_list.add(partition)
