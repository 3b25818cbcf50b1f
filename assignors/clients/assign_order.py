"""An assignment as the leader's `assign()` lists it: order included, which no verdict needs.

`assign` gives sets; where a Java class fills its lists by iterating hash maps, that order is worked out here,
apart, because hashing every name would double the cost of the everyday case.
"""

from __future__ import annotations

from assignors.assignment import Assignment, to_pairs
from assignors.blocks import takers_by_topic
from assignors.clients.racks import racks_by_topic
from assignors.clients.sticky import listed
from assignors.hash_map import in_hash_order
from assignors.library import JAVA, Library
from assignors.model import Group
from assignors.order import sorted_utf16
from assignors.strategy import PartitionRacks

__all__ = ["as_listed"]

# From here on `RangeAssignor` collects the topics of its members with `put`, before with `computeIfAbsent`; and where
# a topic needs racks it sorts its lists.
_COLLECTS_WITH_PUT = _LOOKS_AT_RACKS = (3, 5)

_LISTED_BY_DECISION = ("sticky", "cooperative-sticky")


def as_listed(
    strategy: str, group: Group, library: Library, assignment: Assignment, racks: PartitionRacks | None = None
) -> dict[str, list[tuple[str, int]]]:
    """Partitions per member in the order in which the leader's `assign()` returns them; members in record order.

    Java's `range` lists topics in the order of a HashMap, filled while iterating the HashMap of the members, or
    sorted where it dealt by racks; its sticky strategies list what a member keeps before what it is given, not
    topic by topic; its `roundrobin`, and kafka-python's assignors, list them sorted, which is the order of
    `assign`'s result. For the other libraries, which encode what they assign in an order of their own, topics are
    sorted.

    Args:
        strategy: The strategy that gave the assignment.
        group: Its input.
        library: The leader's library.
        assignment: What `assign` returned.
        racks: Racks that it was given.
    """
    if strategy in _LISTED_BY_DECISION and library.name == JAVA:
        return listed(group, library.release, racks, cooperative=strategy == "cooperative-sticky")
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
