"""`range` of the broker: each topic's partitions are cut into one block per subscriber, the first ones larger.

Follows `org.apache.kafka.coordinator.group.assignor.RangeAssignor` of 3.9 and later. No racks, no stickiness.
"""

from __future__ import annotations

from assignors.assignment import Assignment, Partitions
from assignors.order import utf16
from assignors.server.hash_order import members_in_hash_order
from assignors.server.model import ServerGroup, ServerMember

__all__ = ["cut_ranges"]


def cut_ranges(group: ServerGroup) -> Assignment:
    """What 3.9 and later assign."""
    result: dict[str, dict[str, Partitions]] = {member.member_id: {} for member in group.members}
    takers: dict[str, list[str]] = {}
    for member in _in_order(group):
        for uuid in group.subscribed(member):
            takers.setdefault(uuid.text, []).append(member.member_id)
    for topic_id in sorted(takers):
        of_topic = takers[topic_id]
        quota, larger = divmod(group.counts[topic_id], len(of_topic))
        stop = 0
        for position, member_id in enumerate(of_topic):
            start, stop = stop, stop + quota + (position < larger)
            if stop == start:
                break
            result[member_id][topic_id] = range(start, stop)
    return result


def _in_order(group: ServerGroup) -> list[ServerMember]:
    """Static members by instance id, then dynamic ones by member id."""
    by_id = {member.member_id: member for member in group.members}
    if len({m.group_instance_id for m in group.members if m.group_instance_id is not None}) < sum(
        m.group_instance_id is not None for m in group.members
    ):
        # Equal instance ids, which a coordinator never lets happen, stay in the order of the map.
        by_id = {member_id: by_id[member_id] for member_id in members_in_hash_order(by_id)}
    return sorted(
        by_id.values(),
        key=lambda member: (
            (1, utf16(member.member_id)) if member.group_instance_id is None else (0, utf16(member.group_instance_id))
        ),
    )
