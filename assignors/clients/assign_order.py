"""An assignment in the order in which the leader's `assign()` returns it; verdicts do not need the order.

`assign` returns sets. Java classes that fill their lists by iterating hash maps have an order of their own, which is
computed here separately, because hashing every name would double the cost of the usual case.
"""

from __future__ import annotations

from assignors.assignment import Assignment, to_pairs
from assignors.blocks import takers_by_topic
from assignors.clients.racks import racks_by_topic
from assignors.clients.sticky import lists_of_java
from assignors.hash_map import in_hash_order
from assignors.model import Group
from assignors.order import sorted_utf16
from assignors.strategy import JAVA, Library, PartitionRacks

# From this release on `RangeAssignor` collects its members' topics with `put`, before it with `computeIfAbsent`; and
# where a topic needs racks it sorts its lists.
_COLLECTS_WITH_PUT = _LOOKS_AT_RACKS = (3, 5)

_LISTED_BY_DECISION = ("sticky", "cooperative-sticky")


def as_listed(
    strategy: str, group: Group, library: Library, assignment: Assignment, racks: PartitionRacks | None = None
) -> dict[str, list[tuple[str, int]]]:
    """Partitions per member in the order in which the leader's `assign()` returns them; members in record order.

    Java's `range` lists topics in the order of a HashMap that was filled by iterating the HashMap of members, or sorted
    where it dealt by racks. Its sticky strategies list the partitions a member keeps before its new ones, not topic by
    topic. Its `roundrobin` and kafka-python's assignors return them sorted, the order of `assign`'s result. For the
    other libraries, which encode assignments in an order of their own, topics are sorted.

    Args:
        strategy: The strategy of the assignment.
        group: Its input.
        library: The leader's library.
        assignment: The result of `assign`.
        racks: The racks passed to it.
    """
    if strategy in _LISTED_BY_DECISION and library.name == JAVA:
        return lists_of_java(group, library.release, racks, cooperative=strategy == "cooperative-sticky")
    if strategy == "range" and library.name == JAVA:
        order = _range_order(group, library, racks)
        assignment = {
            member_id: {topic: topics[topic] for topic in order if topic in topics}
            for member_id, topics in assignment.items()
        }
    return to_pairs(assignment)


def _range_order(group: Group, library: Library, racks: PartitionRacks | None) -> list[str]:
    by_id = {member.member_id: member for member in group.members}
    newest = library.release is None or library.release >= _LOOKS_AT_RACKS
    if newest and any(
        t.needed for t in racks_by_topic(group, takers_by_topic(group.members, once=True), racks).values()
    ):
        return sorted_utf16(group.partitions_per_topic)
    return in_hash_order(
        (topic for member_id in in_hash_order(by_id) for topic in by_id[member_id].topics),
        newest_first=library.release is not None and library.release < _COLLECTS_WITH_PUT,
    )
